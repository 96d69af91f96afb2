"""The advice that results give, from results whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from lossmith.statistics.caveats import guessing
from lossmith.statistics.differences.luck import RowLuck
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.experience import Elsewhere, expected
from lossmith.statistics.recommendation import recommend
from lossmith.statistics.summary import compare_to
from lossmith.statistics.verdicts import (
    ALL_DIVERGED,
    ALL_UNTRAINED,
    NO_DIFFERENCE,
    NONE_BETTER,
    NOTHING,
    UNSTABLE,
    UNTRAINED,
)
from study_frames import clean, counted_runs, references_frame, results_frame, trials_frame, untrain

GCE, SUM = "gce(q=0.7)", "1.0*nce + 20.0*mae"
NOISY = "symmetric(0.4)"


def fail(results: pd.DataFrame, loss: str, seeds: int) -> pd.DataFrame:
    failed = (results["loss"] == loss) & (results["seed"] < seeds)
    return results.assign(diverged=failed, accuracy=results["accuracy"].mask(failed), ece=results["ece"].mask(failed))


class TestHeadline:
    def test_a_better_loss_is_recommended_with_its_numbers(self):
        results = clean({"ce": 0.80, GCE: 0.90, "mae": 0.6})
        advice = recommend(results)
        assert (advice.loss, advice.sure, advice.baseline, advice.noise) == (GCE, "strong evidence", "ce", "none")
        assert advice.parameters == {"q": 0.7}
        assert advice.learning_rate == 0.1
        means = results.groupby("loss")["accuracy"].mean()
        assert advice.evidence[0].startswith(
            f"gce(q=0.7) beats ce by +{100 * (means[GCE] - means['ce']):.1f} points (95 % interval +"
        )
        assert advice.evidence[0].endswith("), 5 replicates.")

    def test_is_about_the_data_as_they_are_and_not_about_an_average(self):
        advice = recommend(results_frame({"ce": [0.90, 0.60], GCE: [0.85, 0.85]}))
        assert (advice.loss, advice.sure) == ("ce", "strong evidence")
        assert advice.evidence[0].startswith("ce beats the other loss: gce(q=0.7), -")
        assert [(choice.noise, choice.loss, choice.sure) for choice in advice.by_noise] == [(NOISY, GCE, "strong evidence")]
        assert "average" not in str(advice)

    def test_without_clean_labels_the_first_level_is_the_headline(self):
        results = results_frame({"ce": [0.9, 0.6], GCE: [0.8, 0.8]}, noise=("pair(0.1)", NOISY))
        advice = recommend(results)
        assert (advice.noise, advice.loss) == ("pair(0.1)", "ce")

    def test_no_evidence_of_a_difference_keeps_the_baseline_and_says_how_many_replicates_it_takes(self):
        advice = recommend(clean({"ce": 0.9, GCE: 0.904}, spread=0.01))
        assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
        assert advice.headline == "Stay with ce."
        assert advice.costs == advice.benefits == ()
        assert advice.evidence[0].startswith("No loss beats ce beyond chance; ahead is gce(q=0.7), +")
        words = advice.would_change[0].split()
        assert words[0] == "About"
        assert 5 < int(words[1]) < 1000

    def test_overlap_takes_away_what_it_must(self):
        results = clean({"ce": 0.9, GCE: 0.91}, spread=0.004)
        assert recommend(results).loss == GCE
        advice = recommend(results, overlap=Overlap(1.0))
        assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
        assert advice.would_change[0] == (
            "More replicates of these rows would not show the lead of gce(q=0.7), if it is real: it takes more data."
        )
        rows = recommend(results, luck_of_rows=lambda loss, reference, noise: RowLuck(mean=0.01))
        assert rows.loss == "ce"

    def test_losses_that_cannot_be_told_apart_are_named(self):
        advice = recommend(clean({"ce": 0.6, GCE: 0.7, SUM: 0.7}))
        other = SUM if advice.loss == GCE else GCE
        assert advice.evidence[1] == f"Better than the baseline, too, and not told apart from it: {other}."
        assert advice.would_change[0] == f"More replicates could tell {advice.loss} from {other}."

    def test_one_replicate_says_nothing(self):
        advice = recommend(clean({"ce": 0.9, GCE: 0.95}, seeds=1))
        assert (advice.loss, advice.sure) == ("ce", NOTHING)
        assert advice.evidence[0] == (
            "From 1 replicate nothing can be said about differences. gce(q=0.7) has the best accuracy, which may be luck."
        )
        assert advice.would_change[0] == "More replicates: from one no spread can be told. Ten are a good start."

    def test_the_same_difference_in_two_replicates_is_not_certain(self):
        results = clean({"ce": 0.5}, seeds=2)
        copy = results.assign(loss=GCE, accuracy=results["accuracy"] + 0.01)
        advice = recommend(pd.concat([results, copy], ignore_index=True))
        assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
        assert advice.would_change[0] == "More replicates could show the lead of gce(q=0.7); how many cannot be told from these."

    def test_equal_losses_keep_the_baseline(self):
        results = clean({"ce": 0.5})
        advice = recommend(pd.concat([results, results.assign(loss=GCE)], ignore_index=True))
        assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)

    def test_the_baseline_can_be_better_than_some_or_all(self):
        advice = recommend(clean({"ce": 0.9, GCE: 0.8, "mae": 0.7}))
        assert (advice.loss, advice.sure) == ("ce", "strong evidence")
        assert advice.evidence[0].startswith("ce beats every other loss; next is gce(q=0.7), -")
        assert recommend(clean({"ce": 0.9, GCE: 0.9, "mae": 0.7})).sure == NONE_BETTER

    def test_only_one_loss(self):
        advice = recommend(clean({"ce": 0.6}))
        assert (advice.loss, advice.sure) == ("ce", NOTHING)

    def test_without_the_baseline_the_first_loss_takes_its_place(self):
        assert recommend(clean({"mae": 0.6, GCE: 0.9})).baseline == "mae"

    def test_no_results(self):
        with pytest.raises(ValueError, match=r"^recommend: there are no results; no run of the study has finished\.$"):
            recommend(clean({"ce": 0.9}).iloc[:0])

    def test_the_interval_beside_a_verdict_is_the_one_it_uses(self):
        # Uncorrected, the interval of the second loss leaves out 0; among five losses it is no evidence.
        results = clean({"ce": 0.9, "a": 0.9085, "b": 0.9, "c": 0.9, "d": 0.9}, spread=0.004)
        alone = compare_to(results[results["loss"].isin(["ce", "a"])], "ce").iloc[0]
        assert alone["low"] > 0
        advice = recommend(results)
        row = advice.differences.set_index("loss").loc["a"]
        assert advice.sure == NO_DIFFERENCE
        assert row["low"] < 0
        assert f"(95 % interval {100 * row['low']:+.1f} to {100 * row['high']:+.1f})" in advice.evidence[0]

    def test_false_recommendations_are_as_rare_as_promised(self):
        # Six losses are the same in 40 studies: Holm allows a wrong recommendation in 5 % of them. Binomial: P(X > 7) < 0.001.
        rng = np.random.default_rng(1)
        keys = [(loss, seed) for loss in ("ce", "a", "b", "c", "d", "e") for seed in range(4)]
        frame = pd.DataFrame(keys, columns=["loss", "seed"]).assign(noise="none")
        wrong = sum(recommend(frame.assign(accuracy=rng.normal(0.8, 0.02, len(keys)))).loss != "ce" for _ in range(40))
        assert wrong <= 7


class TestFailures:
    def test_a_loss_that_diverges_is_not_recommended(self):
        advice = recommend(fail(clean({"ce": 0.6, GCE: 0.9, "mae": 0.7}), GCE, seeds=1))
        assert advice.loss == "mae"
        assert "gce(q=0.7) diverged in 1 of 5 replicates." in advice.evidence

    def test_a_baseline_that_diverges_is_not_recommended_either(self):
        advice = recommend(fail(clean({"ce": 0.6, GCE: 0.6}), "ce", seeds=2))
        assert (advice.loss, advice.sure) == (GCE, UNSTABLE)
        assert advice.evidence[0] == (
            "ce diverged in 2 of 5 replicates; of the losses that trained, gce(q=0.7) has the best accuracy."
        )

    def test_nothing_is_recommended_where_every_loss_diverged(self):
        results = clean({"ce": 0.6, GCE: 0.6})
        advice = recommend(results.assign(diverged=True, accuracy=np.nan, ece=np.nan))
        assert (advice.headline, advice.sure, advice.has_loss) == ("No loss to recommend.", ALL_DIVERGED, False)
        assert "smaller learning rates" in advice.evidence[0]
        assert str(advice).startswith("No loss to recommend. Every loss diverged")

    def test_divergence_at_another_noise_level_does_not_count(self):
        results = results_frame({"ce": [0.6, 0.5], GCE: [0.9, 0.9]})
        failed = (results["loss"] == GCE) & (results["noise"] == NOISY)
        advice = recommend(results.assign(diverged=failed))
        assert advice.loss == GCE
        assert advice.by_noise[0].loss == "ce"

    def test_a_loss_with_missing_replicates_is_not_recommended(self):
        results = clean({"ce": 0.6, GCE: 0.9, "mae": 0.6})
        advice = recommend(results.drop(results.query("loss == @GCE and seed == 0").index))
        assert advice.loss == "ce"
        assert "gce(q=0.7) has 4 of 5 replicates only." in advice.evidence

    def test_a_study_that_has_hardly_begun(self):
        results = results_frame({"ce": [0.6, 0.5], GCE: [0.9, 0.9]})
        advice = recommend(results[(results["loss"] == "ce") == (results["noise"] == "none")])
        assert (advice.loss, advice.sure) == ("ce", NOTHING)
        assert advice.by_noise[0].reason == "ce has no results to compare with yet."
        other_way = recommend(results[(results["loss"] == "ce") != (results["noise"] == "none")])
        assert (other_way.sure, other_way.evidence[0]) == (NOTHING, "ce has no results to compare with yet.")


class TestUntrained:
    def test_an_untrained_loss_is_named_and_neither_recommended_nor_compared(self):
        advice = recommend(untrain(clean({"ce": 0.8, GCE: 0.9, "mae": 0.799}), GCE, seeds=3))
        assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
        assert "closest is mae" in advice.evidence[0]
        assert advice.untrained == ("gce(q=0.7) looks untrained in 3 of 5 replicates: predicts one class.",)
        assert advice.untrained[0] in str(advice).replace("\n    ", " ")

    def test_fewer_than_half_of_the_replicates_do_not_count(self):
        advice = recommend(untrain(clean({"ce": 0.8, GCE: 0.9}), GCE, seeds=2))
        assert (advice.loss, advice.untrained) == (GCE, ())

    def test_a_comparison_with_an_untrained_baseline_is_no_evidence(self):
        advice = recommend(untrain(clean({"ce": 0.2, GCE: 0.9, "mae": 0.8}), "ce"))
        assert (advice.loss, advice.sure) == (GCE, UNTRAINED)
        assert advice.evidence[0].startswith(
            "ce looks untrained in 5 of 5 replicates: predicts one class; of the losses that trained, "
        )
        assert advice.evidence[0].endswith("gce(q=0.7) has the best accuracy.")

    def test_no_loss_is_trained(self):
        results = clean({"ce": 0.2, GCE: 0.2}).assign(untrained="no better than the largest class")
        advice = recommend(results)
        assert (advice.headline, advice.sure) == ("No loss to recommend.", ALL_UNTRAINED)
        assert len(advice.untrained) == 2

    def test_at_a_level_of_added_noise(self):
        results = results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.7], "mae": [0.9, 0.8]})
        advice = recommend(untrain(results, "mae", noise=NOISY))
        assert advice.untrained == ()
        assert advice.by_noise[0].loss == GCE
        assert "Untrained: mae." in str(advice)


class TestReferences:
    def test_a_reference_that_is_ahead_is_said_first(self):
        references = references_frame({"largest class": 0.1, "logistic regression": 0.93, "RBF-SVM": 0.95})
        advice = recommend(clean({"ce": 0.8, GCE: 0.9}), references=references)
        assert advice.references[0].startswith("RBF-SVM is ")
        assert "ahead of the best loss, gce(q=0.7) (95 % interval +" in advice.references[0]
        assert advice.references[0].endswith("another model may gain more than another loss. Ahead, too: logistic regression.")
        assert str(advice).startswith("RBF-SVM is ")
        assert advice.loss == GCE

    def test_the_best_loss_counts_though_the_baseline_stays(self):
        advice = recommend(clean({"ce": 0.9, GCE: 0.903}, spread=0.01), references=references_frame({"RBF-SVM": 0.96}))
        assert advice.loss == "ce"
        assert "the best loss, gce(q=0.7)" in advice.references[0]

    def test_a_small_lead_that_chance_explains_is_not_worth_a_word(self):
        assert recommend(clean({"ce": 0.9}), references=references_frame({"RBF-SVM": 0.903}, spread=0.02)).references == ()
        wide = references_frame({"RBF-SVM": 0.93}, spread=0.06)
        assert recommend(clean({"ce": 0.9}), references=wide).references[0].endswith(", which chance could explain.")

    def test_at_a_level_of_added_noise(self):
        references = references_frame({"RBF-SVM": 0.8}, noise=["none", NOISY])
        advice = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.7]}), references=references)
        assert advice.references == ()
        assert advice.by_noise[0].reference.startswith("RBF-SVM is ")
        assert advice.by_noise[0].reference in " ".join(str(advice).split())

    def test_references_without_probabilities_have_no_likelihood(self):
        advice = recommend(clean({"ce": 0.8, GCE: 0.9}), metric="nll", references=references_frame({"RBF-SVM": 0.99}))
        assert advice.references == ()

    def test_a_metric_of_which_less_is_better(self):
        references = references_frame({"RBF-SVM": 0.99}).assign(nll=lambda frame: 1.5 - frame["accuracy"])
        advice = recommend(clean({"ce": 0.8, GCE: 0.9}), metric="nll", references=references)
        assert advice.references[0].startswith("RBF-SVM is 0.0")
        assert " in negative log-likelihood ahead of the best loss, gce(q=0.7)" in advice.references[0]


class TestSideEffects:
    def test_worse_calibration_and_time_are_costs(self):
        results = clean({"ce": 0.80, GCE: 0.90}, ece={GCE: 0.12}, seconds={"ce": 2.0, GCE: 5.0})
        advice = recommend(results)
        assert advice.costs[0].startswith("Calibration is worse: expected calibration error 0.1")
        assert advice.costs[1] == "Training takes 2.5 times as long as with ce."
        assert advice.benefits == ()

    def test_better_calibration_is_a_benefit_and_no_cost(self):
        advice = recommend(clean({"ce": 0.80, GCE: 0.90}, ece={"ce": 0.12}, seconds={"ce": 5.0, GCE: 2.0}))
        assert advice.costs == ()
        assert advice.benefits[0].startswith("Calibration is better: expected calibration error 0.0")
        assert advice.benefits[1] == "Training takes 40 % of the time that ce takes."
        assert "\nBenefits:\n" in str(advice)
        assert "\nCosts:\n" not in str(advice)

    def test_what_chance_explains_is_neither(self):
        advice = recommend(clean({"ce": 0.80, GCE: 0.90}))
        assert advice.costs == advice.benefits == ()

    def test_accuracy_is_a_cost_where_something_else_was_judged_by(self):
        results = clean({"ce": 0.90, GCE: 0.80})
        advice = recommend(results.assign(nll=results["accuracy"]), metric="nll")
        assert advice.loss == GCE
        assert advice.costs[0].startswith("Accuracy is worse: mean ")


class TestMetrics:
    def test_a_metric_of_which_less_is_better(self):
        results = clean({"ce": 0.9, GCE: 0.9}, ece={"ce": 0.1, GCE: 0.02})
        advice = recommend(results, metric="ece")
        assert advice.loss == GCE
        assert advice.evidence[0].startswith("gce(q=0.7) beats ce by +0.0")
        assert "in expected calibration error, where plus is lower and better, 5 replicates." in advice.evidence[0]

    def test_balanced_accuracy_is_named(self):
        advice = recommend(clean({"ce": 0.8, GCE: 0.9}), metric="balanced_accuracy")
        assert ") in balanced accuracy, 5 replicates." in advice.evidence[0]

    def test_uneven_classes_are_named(self):
        advice = recommend(clean({"ce": 0.8, GCE: 0.9}), class_shares=[0.7, 0.1, 0.1, 0.05, 0.05])
        assert advice.evidence[-1] == (
            "Classes are uneven, the largest has 70 % of the rows, the smallest 5.0 %; accuracy hides the rare ones "
            "(--metric balanced-accuracy)."
        )
        assert "uneven" not in str(recommend(clean({"ce": 0.8, GCE: 0.9}), class_shares=[0.5, 0.3, 0.2]))
        rare = recommend(clean({"ce": 0.8, GCE: 0.9}), class_shares=[0.95, 0.05])
        assert "Classes are uneven" in rare.evidence[-1]

    def test_balanced_accuracy_that_tells_another_story_is_told(self):
        results = clean({"ce": 0.90, GCE: 0.90, "mae": 0.8})
        ahead = results["loss"] == GCE
        advice = recommend(results.assign(balanced_accuracy=results["accuracy"] + 0.1 * ahead))
        assert advice.loss == "ce"
        assert advice.evidence[-1].startswith(
            "By balanced accuracy, in which rare classes count as much: gce(q=0.7) beats ce by +"
        )
        worse = recommend(clean({"ce": 0.8, GCE: 0.9}).assign(balanced_accuracy=lambda frame: 1 - frame["accuracy"]))
        assert "gce(q=0.7) is worse than ce, -" in worse.evidence[-1]


class TestNoise:
    def test_added_noise_is_told_line_by_line(self):
        text = " ".join(str(recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.7]}))).split())
        assert "What if labels were wrong? - symmetric(0.4), 36 % wrong: gce(q=0.7) beats ce by +" in text
        assert "5 replicates. Strong evidence." in text

    def test_what_was_not_tried(self):
        noisy = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.7]}))
        assert noisy.would_change[-1] == "More wrong labels than 36 % were not tried."
        advice = recommend(clean({"ce": 0.9, GCE: 0.95}))
        assert advice.by_noise == ()
        assert advice.would_change == ("Wrong labels were not tried; with them the order often changes.",)

    def test_labels_that_are_wrong_already(self):
        advice = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.7]}), noisy_labels=0.18)
        assert advice.evidence[-1].startswith(
            "About 18 % of these labels are wrong as they are, and the answer is for that share"
        )
        assert advice.evidence[-1].endswith("; what was added comes on top of it.")


def test_printed_form_is_short_and_plain():
    trials = trials_frame({"ce": [0.9, 0.6], GCE: [0.95, 0.7], "mae": [0.5, 0.5]}, needs_tuning={GCE: 0.01})
    results = untrain(counted_runs(trials), "mae").assign(noise_rate=lambda frame: 0.36 * (frame["noise"] != "none"))
    references = references_frame({"RBF-SVM": 0.99})
    advice = recommend(results, trials=trials, references=references, overlap=Overlap(0.2), validation_rows=100)
    lines = str(advice).splitlines()
    assert max(map(len, lines)) <= 100
    assert str(advice).isascii()
    assert "Train with gce(q=0.7). Strong evidence." in lines
    assert "seed" not in str(advice)
    order = ["RBF-SVM is", "Train with", "  - gce", "How much will you tune?", "What if labels", "What would change"]
    places = [next(place for place, line in enumerate(lines) if line.startswith(start)) for start in order]
    assert places == sorted(places)


def test_other_data_is_taken_into_account():
    quality = {"ce": [0.70, 0.71, 0.69, 0.72, 0.70], "gce": [0.72, 0.70, 0.72, 0.71, 0.73], "sce": [0.69, 0.72, 0.68, 0.71, 0.70]}
    rows = pd.DataFrame(quality).rename_axis("seed").reset_index().melt("seed", var_name="loss", value_name="accuracy")
    rows = rows.assign(noise="none", noise_rate=0.0)
    ahead, level = [0.02, 0.03, 0.02, 0.03, 0.01] * 3, [0.001, -0.001, 0.0] * 5
    known = Elsewhere("15 tables with labels as they are", {"gce": ahead, "sce": level, "focal": ahead})
    asked = []
    found = recommend(rows, experience=lambda *level: (asked.append(level), known)[1])
    assert (found.loss, asked) == ("ce", [("none", 0.0)])  # no verdict changes
    (line,) = found.elsewhere
    assert line.startswith("Together with 15 tables with labels as they are, gce is to be expected ahead: +1.")
    assert "better than ce with a probability of " in line
    assert line in " ".join(str(found).split())
    scarce = Elsewhere("9 tables", {"gce": ahead[:9]})
    assert recommend(rows, experience=lambda *level: scarce).elsewhere == ()
    assert recommend(rows, experience=lambda *level: None).elsewhere == ()


def test_a_sure_study_outweighs_other_data():
    others = [0.0, 0.02, -0.02, 0.01, -0.01]
    assert expected(0.10, 0.001, others).difference == pytest.approx(0.10, abs=1e-3)
    assert expected(0.10, 10.0, others).difference == pytest.approx(0.0, abs=1e-3)
    both = expected(0.04, np.sqrt(np.var(others, ddof=1) * 1.2), others)  # as sure as the others: half way
    assert both.difference == pytest.approx(0.02)
    with pytest.raises(ValueError, match="must be positive, got 0 and"):
        expected(0.1, 0, others)


def test_guessing_is_told_by_the_metric():
    """A class with nine tenths of the rows is worth an accuracy of 90 % and a balanced one of 50 %."""
    results = clean({"ce": 0.85, GCE: 0.88}).assign(balanced_accuracy=0.7, macro_f1=0.1)
    labels = np.repeat([0, 1], [90, 10])
    lead = "No loss does better than always predicting the commonest class"
    assert guessing(results, labels, "accuracy") == [f"{lead}, 90.0 % of the test split."]
    assert guessing(results, labels, "balanced_accuracy") == guessing(results, labels, "macro_f1") == []
    always = results.assign(balanced_accuracy=0.5)
    assert guessing(always, labels, "balanced_accuracy") == [f"{lead}, a balanced accuracy of 50.0 %."]
