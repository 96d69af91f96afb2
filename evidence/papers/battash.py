"""Battash, Hazan and Wolf, "Mixing between the cross entropy and the expectation loss terms": tables and texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy import stats

from evidence.papers.conventions import accuracies
from evidence.papers.paper_table import Frames, PaperTable, Piece, StudyTable, Workshop
from evidence.tables import MORE, NAMES, TARGET, file_of, made_table
from lossmith.statistics import performance_profile, rank_losses
from lossmith.studies import Study
from lossmith.theory import escaping_efficiency, gradient_volume_factor

__all__ = ["TABLES", "ranking"]

PAPER = "Battash, Hazan and Wolf"
LOSSES = ["ce", "ce-el", "ce-el-late", "ce-el-gradual", "el", "focal"]
CONTROL = f"{gradient_volume_factor(1.0, 1.0):.4g}*ce"
"""Cross-entropy with gradients as large on average as those of CE+EL: equations 20 to 22."""
PROFILE = np.round(np.linspace(0.8, 1.0, 41), 3)


def _table(name: str) -> Callable[[Path], Path]:
    return lambda folder: made_table(name, file_of(name, folder.parent / "tables")).file


def _pieces(recipe: str) -> tuple[Piece, ...]:
    settings = {
        "recipe": recipe,
        "losses": [*LOSSES, CONTROL],
        "seeds": 3,
        "references": False,
        "target": TARGET,
        "select": "last",  # curves have every epoch, and the best one counts
    }
    return tuple(Piece(file_of(name, Path()).stem, settings, _table(name), {"table": name}) for name in (*NAMES, *MORE))


def ranking(found: pd.DataFrame, block: str = "table") -> Frames:
    """Return the protocol of the paper: wins, mean differences with intervals, mean ranks, Friedman, Conover, Dolan and More.

    Args:
        found: Accuracies, a row for each block, loss and replicate.
        block: The column that tells data sets apart.

    Returns:
        ``ranking``, ``conover`` and ``profile``.
    """
    blocks = found.groupby([block, "loss"], sort=False)["accuracy"].mean().unstack()[list(dict.fromkeys(found["loss"]))]
    published = blocks[[loss for loss in blocks if loss != CONTROL]]
    ranked = rank_losses(published, "ce")
    rows = ranked.summary.reset_index(names="loss").assign(tables=len(published), friedman_p=ranked.friedman.p)
    control = blocks[[loss for loss in blocks if loss == CONTROL]].assign(ce=blocks["ce"])
    others = [{"loss": loss, "mean_difference": (control[loss] - control["ce"]).mean()} for loss in control.columns.drop("ce")]
    rows = pd.concat([rows, pd.DataFrame(others)], ignore_index=True)
    bounds = [_interval(blocks[loss] - blocks["ce"]) for loss in rows["loss"]]
    rows[["low", "high"]] = bounds
    conover = ranked.p.reset_index(names="loss")
    return {
        "ranking": rows,
        "conover": conover,
        "profile": performance_profile(published, PROFILE).reset_index(names="threshold"),
    }


def _interval(differences: "pd.Series[float]") -> tuple[float, float]:
    """Return the 95 % t interval of the mean over data sets."""
    if len(differences) < 2:
        return float("nan"), float("nan")
    half = float(stats.t.ppf(0.975, len(differences) - 1) * differences.sem())
    return float(differences.mean() - half), float(differences.mean() + half)


def _ranked(made: Sequence[tuple[Piece, Study]]) -> Frames:
    return ranking(accuracies(made).query("epoch == 'best'"))


def _over_tables(name: str, recipe: str, network: str) -> StudyTable:
    return StudyTable(
        name=name,
        paper=f"{PAPER}, table 4",
        about=f"{len(NAMES) + len(MORE)} real tables, {network}, six losses, and CE with gradients as large as those of CE+EL",
        minutes=35,
        reduced="63 tables of KEEL, mlbench and scikit-learn, of 1,000 rows at most, for 121 of UCI; three replicates for two",
        pieces=_pieces(recipe),
        further=_ranked,
    )


LINEAR = _over_tables("battash-linear", "battash-uci", "a linear classifier")
HIDDEN = _over_tables("battash-hidden", "battash-uci-hidden", "one hidden layer as wide as the input")

MIXTURES = ["ce", "ce-el", "ce-el-late", "ce-el-gradual"]
WORDS = {
    "losses": MIXTURES,
    "noise": ["0"],
    "seeds": 5,
    "model": "lstm50",
    "text": "words",
    "optimizer": "adam",
    "schedule": "constant",
    "epochs": 10,
    "rates": [1e-3],
    "decays": [0.0],
    "references": False,
}
TUNED = {
    "losses": MIXTURES,
    "noise": ["0"],
    "seeds": 3,
    "model": "encoder",
    "encoder": "minilm",
    "fine_tune": True,
    "epochs": 4,
    "train_rows": 1000,
    "rates": [1e-4],
    "decays": [0.01],
    "references": False,
}
TEXTS = StudyTable(
    name="battash-texts",
    paper=f"{PAPER}, table 3 and figure 2",
    about="an LSTM of 50 on two sets of texts, and a fine-tuned encoder on one: cross-entropy against its mixtures with EL",
    minutes=75,
    reduced="other texts than the paper's reviews and GLUE; MiniLM in the place of BERT, 1,000 texts, four epochs",
    pieces=(
        Piece("lstm-election-tweets", WORDS, "election-tweets", {"texts": "election-tweets", "network": "lstm50"}),
        Piece("lstm-bbc-news", WORDS, "bbc-news", {"texts": "bbc-news", "network": "lstm50"}),
        Piece("encoder-election-tweets", TUNED, "election-tweets", {"texts": "election-tweets", "network": "MiniLM"}),
    ),
)


@dataclass(frozen=True)
class Escaping:
    """Escaping efficiency of three losses on the same networks, which cross-entropy trained."""

    name: str = "battash-escaping"
    paper: str = f"{PAPER}, equations 15 to 18"
    about: str = "Tr(H S) of CE, EL and CE+EL on the same networks, trained by CE on five tables"
    minutes: int = 5
    reduced: str = "nothing; the paper gives no numbers"
    tables: tuple[str, ...] = ("wine", "digits", "keel:vehicle", "keel:segment", "keel:vowel")
    losses: tuple[str, ...] = ("ce", "el", "ce-el")
    rows: int = 300

    def make(self, workshop: Workshop) -> Iterator[Frames]:
        """Train networks on each table, and measure them."""
        settings = {"recipe": "battash-uci-hidden", "losses": ["ce"], "seeds": 3, "rates": [0.01], "keep": ["weights"]}
        settings |= {"references": False, "target": TARGET, "select": "last"}
        found: list[dict[str, object]] = []
        for name in self.tables:
            piece = Piece(file_of(name, Path()).stem, settings, _table(name))
            if (study := workshop.study(self, piece)) is not None:
                found += list(self._measured(name, study))
                yield {"efficiency": pd.DataFrame(found)}

    def _measured(self, name: str, study: Study) -> Iterator[dict[str, object]]:
        for run in study.results.itertuples():
            data, model = study.load(int(run.seed)), study.model(int(run.run)).double()
            rows = data.train[: self.rows]
            batches = [(data.inputs[rows].double(), data.labels[rows])]
            of_ce = 0.0
            for loss in self.losses:
                drawn = torch.Generator().manual_seed(0)  # the same signs for every loss
                value, error = escaping_efficiency(model, loss, batches, probes=64, generator=drawn)
                of_ce = of_ce or value  # the first is cross-entropy
                found = {"efficiency": value, "standard_error": error, "times_ce": value / of_ce}
                yield {"table": name, "seed": run.seed, "loss": loss, **found}


TABLES: tuple[PaperTable, ...] = (LINEAR, HIDDEN, Escaping(), TEXTS)
