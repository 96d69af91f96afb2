"""How good is advice from the map? ``python -m evidence.map.leave_out``, after ``python -m evidence.map``.

Every data set is left out in turn, and advice for it is taken from the others: how often is the advised loss the best on it, or
within one point of the best, and how far behind is it on average? Beside it stand always ``ce``, always ``gce``, and the theory
alone, by its ranking and by the pull of wrong labels only. How many neighbours advice rests on is chosen without the set that
it is judged on. Sets of uneven classes, judged by balanced accuracy, have a table of their own: of these there are too few to
choose neighbours among.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks.measure import markdown_table
from evidence.map.means import map_means, uneven_means
from evidence.map.ship import write_map
from evidence.studies import export, share
from lossmith import advise
from lossmith.objectives.named_objectives import make_objective
from lossmith.theory.advice import Advice, Candidate
from lossmith.theory.studied.loss_map import BASELINE, LossMap, StudiedSet
from lossmith.theory.studied.similar_data import Task, similar_data
from lossmith.theory.studied.worth_trying import worth_trying

__all__ = ["advised", "best_neighbours", "judged", "main", "shortlist_text", "shortlisted"]

NEIGHBOURS = (None, 32, 16, 8, 4)
"""None stands for all sets of a kind; of equally good numbers the first counts."""
ONE_POINT = 0.01
Advise = Callable[[LossMap, StudiedSet, float], str]
"""From the other sets, a set and a share of wrong labels to a loss."""


def _always(loss: str) -> Advise:
    return lambda *_: loss


def advised(others: LossMap, of: StudiedSet, noise: float) -> str:
    """Return what the map without a set advises for it; cross-entropy where it is silent."""
    found = similar_data(others, Task(of.classes, noise, of.rows, of.kind, of.imbalance))
    return BASELINE if found is None else found.advised


def judged(studied: LossMap, advise_for: Advise) -> pd.DataFrame:
    """Return for every set and noise which loss was advised, and how far it is behind the best.

    Args:
        studied: The map.
        advise_for: How a loss is advised.

    Returns:
        ``data``, ``noise``, ``advised``, ``best`` and ``behind``; a loss that was not studied there stands for cross-entropy.
    """
    return pd.DataFrame([row for of in studied.sets for row in _judged_on(studied.without(of.name), of, advise_for)])


def _judged_on(others: LossMap, of: StudiedSet, advise_for: Advise) -> Iterator[dict[str, object]]:
    for noise, accuracies in of.accuracy.items():
        loss = advise_for(others, of, noise)
        best = max(accuracies, key=lambda name: accuracies[name])
        behind = accuracies[best] - accuracies.get(loss, accuracies[BASELINE])
        yield {"data": of.name, "noise": noise, "advised": loss, "best": best, "behind": behind}


def with_neighbours(studied: LossMap, count: int | None) -> LossMap:
    """Return the map with another number of neighbours."""
    return LossMap(studied.sets, {**studied.about, "neighbours": count})


def best_neighbours(studied: LossMap) -> int | None:
    """Return the number of neighbours with which advice is least behind, every set left out in turn."""
    behind = {count: judged(with_neighbours(studied, count), advised)["behind"].mean() for count in NEIGHBOURS}
    return min(behind, key=lambda count: behind[count])


def nested(others: LossMap, of: StudiedSet, noise: float) -> str:
    """Return the advice with as many neighbours as are best for the other sets."""
    return advised(with_neighbours(others, _best_without(of.name, others)), of, noise)


_KNOWN: dict[str, int | None] = {}


def _best_without(name: str, others: LossMap) -> int | None:
    if name not in _KNOWN:
        _KNOWN[name] = best_neighbours(others)
    return _KNOWN[name]


OF_UNEVEN: Mapping[str, Advise] = {
    "the map": advised,
    **{f"always {loss}": _always(loss) for loss in (BASELINE, "balanced-softmax", "ce, balanced weights")},
}
"""Ways to advise where classes are uneven."""


def shortlisted(studied: LossMap) -> pd.DataFrame:
    """Return for every set what would be compared on it by default, going by the others, among the losses of the map.

    Args:
        studied: The map.

    Returns:
        A row for each set and noise: how many losses that would be, of how many, and how far the best of them is behind the best.
    """
    rows = []
    for of in studied.sets:
        for noise, accuracies in of.accuracy.items():
            task = Task(of.classes, noise, of.rows, of.kind, of.imbalance)
            chosen = [loss for loss in worth_trying(studied.without(of.name), [task], [*accuracies]).losses if loss in accuracies]
            behind = max(accuracies.values()) - max(accuracies[loss] for loss in chosen)
            rows.append({"data": of.name, "noise": noise, "losses": len(chosen), "of": len(accuracies), "behind": behind})
    return pd.DataFrame(rows)


class Theory:
    """Advice from the numbers of classes and wrong labels alone, among the losses of the map."""

    def __init__(self, studied: LossMap) -> None:
        self._losses = {str(make_objective(name).loss): name for name in studied.losses if not make_objective(name).schedules}
        self._advice = cache(self._computed)

    def _computed(self, classes: int, noise: float) -> Advice:
        return advise(classes, noise, list(self._losses.values()))

    def by_rank(self, _: LossMap, of: StudiedSet, noise: float) -> str:
        """Return the first recommendation."""
        found = self._advice(of.classes, noise)
        wanted = found.recommendations[0].loss if found.recommendations else BASELINE
        return self._name(next((each for each in found.candidates if each.use == wanted), None))

    def by_pull(self, _: LossMap, of: StudiedSet, noise: float) -> str:
        """Return the loss that learns and on which wrong labels pull least; without wrong labels, that of the largest overlap."""
        learning = [each for each in self._advice(of.classes, noise).candidates if each.learns]
        order: Callable[[Candidate], tuple[float, float]] = lambda each: (each.wrong_label_share, -each.use_overlap)  # noqa: E731
        return self._name(min(learning, key=order, default=None))

    def _name(self, candidate: Candidate | None) -> str:
        return BASELINE if candidate is None else self._losses.get(candidate.loss, BASELINE)


def summary(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how often each way to advise is right.

    Args:
        found: Rows of :func:`judged`, by the way.

    Returns:
        A row for each way and noise, and for all noises together.
    """
    rows = []
    for way, frame in found.items():
        for noise in (*sorted(frame["noise"].unique()), "all"):
            part = frame if noise == "all" else frame[frame["noise"] == noise]
            near = int((part["behind"] <= ONE_POINT + 1e-9).sum())
            best = int((part["behind"] <= 1e-9).sum())
            mean = f"{100 * part['behind'].mean():.2f}"
            rows.append([way, str(noise), share(best, len(part)), share(near, len(part)), mean])
    return pd.DataFrame(rows, columns=["advice", "wrong labels", "the best", "within one point of it", "points behind"])


def shortlist_text(found: Mapping[str, float]) -> str:
    """Return what :func:`shortlisted` found, in words."""
    return (
        f"Where no losses are named, `compare` tries {found['losses']:.1f} of these {found['of']:.0f} on average, each set left\n"
        f"out in turn. The best was among them in {found['best']} of {found['studies']} cases; on average the best of them is\n"
        f"{found['behind']:.2f} points behind it."
    )


def main() -> None:
    """Judge all ways, export and print how often they are right, and keep the number of neighbours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results", help="of the exported tables")
    options = parser.parse_args()
    means, protocol = map_means(options.results)
    with TemporaryDirectory() as folder:
        studied = write_map(means, Path(folder) / "map.csv", protocol=protocol)
        uneven = write_map(uneven_means(options.results), Path(folder) / "uneven.csv")
    theory = Theory(studied)
    ways: dict[str, Advise] = {
        "the map": nested,
        "always ce": _always(BASELINE),
        "always gce": _always("gce"),
        "theory, by its ranking": theory.by_rank,
        "theory, by pull alone": theory.by_pull,
    }
    found = {way: judged(studied, advise_for) for way, advise_for in ways.items()}
    table = summary(found)
    of_uneven = summary({way: judged(uneven, advise_for) for way, advise_for in OF_UNEVEN.items()}) if uneven.sets else None
    folder_of_map = options.results / "map"
    export(pd.concat([frame.assign(advice=way) for way, frame in found.items()]), folder_of_map / "leave_out.csv")
    neighbours, sets = best_neighbours(studied), len(studied.sets)
    kept = {"neighbours": neighbours, "sets": sets, "table": table.to_dict("records"), "uneven_sets": len(uneven.sets)}
    shortlists = shortlisted(with_neighbours(studied, neighbours))
    kept["shortlists"] = {
        "studies": len(shortlists),
        "losses": round(float(shortlists["losses"].mean()), 2),
        "of": round(float(shortlists["of"].mean()), 2),
        "best": int((shortlists["behind"] <= 1e-9).sum()),
        "behind": round(100 * float(shortlists["behind"].mean()), 2),
    }
    if of_uneven is not None:
        kept["uneven"] = of_uneven[of_uneven["wrong labels"] == "all"].drop(columns="wrong labels").to_dict("records")
    (folder_of_map / "leave_out.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{sets} data sets, {'all' if neighbours is None else neighbours} neighbours; {protocol}\n")
    print(markdown_table(list(table.columns), table.to_numpy().tolist()))
    print(f"\n{shortlist_text(kept['shortlists'])}")
    if of_uneven is not None:
        print(f"\n{len(uneven.sets)} data sets of uneven classes\n")
        print(markdown_table(list(kept["uneven"][0]), [list(row.values()) for row in kept["uneven"]]))


if __name__ == "__main__":
    main()
