"""The advice about settings: how much tuning matters, and what hangs on one of several good settings."""

import numpy as np
import pandas as pd
import pytest

from lossmith.statistics.recommendation import recommend
from lossmith.statistics.verdicts import DEPENDS, NO_DIFFERENCE
from study_frames import counted_runs, trials_frame, untrain

GCE = "gce(q=0.7)"
NOISY = "symmetric(0.4)"


class TestTuning:
    def test_the_answer_depends_on_how_much_is_tuned(self):
        trials = trials_frame({"ce": [0.9], GCE: [0.9]}, noise=["none"], needs_tuning={"ce": 0.1, GCE: 0.01})
        advice = recommend(counted_runs(trials), trials=trials, validation_rows=200)
        assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
        assert advice.tuning[0].startswith("With up to four trials: gce(q=0.7), +")
        assert advice.tuning[0].endswith(" after four; with all eight: the answer above.")
        assert advice.tuning[1].endswith("it needs less tuning.")
        assert "How much will you tune?\n" in str(advice)

    def test_other_levels_are_told_where_they_change(self):
        trials = trials_frame({"ce": [0.9, 0.8], GCE: [0.9, 0.8], "mae": [0.9, 0.8]}, spread=0.02)
        hard = (trials["noise"] == NOISY) & (trials["loss"] == "ce") & ~trials["counts"]
        trials.loc[hard, ["accuracy", "validation_score"]] -= 0.2
        advice = recommend(counted_runs(trials), trials=trials)
        assert (
            advice.tuning[0]
            == "Labels as they are, with up to four trials: no evidence of a difference; with all eight: the answer above."
        )
        assert advice.tuning[1].startswith("At symmetric(0.4), with up to four trials: mae, +")

    def test_untrained_losses_are_left_out(self):
        trials = trials_frame({"ce": [0.9], GCE: [0.9], "mae": [0.99]}, noise=["none"])
        advice = recommend(untrain(counted_runs(trials), "mae"), trials=trials)
        assert advice.tuning == ("With up to four trials: no evidence of a difference; with all eight: the answer above.",)

    def test_trials_without_weights_say_nothing(self):
        trials = trials_frame({"ce": [0.9], GCE: [0.9]}, noise=["none"]).assign(weight=0.0)
        assert recommend(counted_runs(trials), trials=trials).tuning == ()

    def test_tuned_numbers_are_medians(self):
        trials = trials_frame({"ce": [0.8], GCE: [0.9]}, noise=["none"])
        results = counted_runs(trials)
        written = [f"q={0.1 * (seed + 1):g}" for seed in results["seed"]]
        advice = recommend(results.assign(parameters=written), trials=trials)
        chosen = results[results["loss"] == GCE]
        assert advice.parameters["q"] == pytest.approx(0.3)
        assert advice.weight_decay == chosen["weight_decay"].median()
        assert advice.learning_rate == chosen["learning_rate"].median()


def hanging(*, changed_rate: float) -> pd.DataFrame:
    """Return trials in which validation rows cannot tell two rates of ce, one of which is as good as the other loss."""
    trials = trials_frame({"ce": [0.60], "bi-tempered": [0.62]}, rates=(0.01, 0.1), noise=["none"], spread=0.001)
    ce, other = trials["loss"] == "ce", trials["learning_rate"] == 0.1
    trials.loc[ce & other, "accuracy"] = 0.617 + np.random.default_rng(0).normal(0, 0.001, 5)
    trials.loc[ce & ~other, "accuracy"] = 0.60 + np.random.default_rng(1).normal(0, 0.001, 5)
    trials.loc[~ce, "accuracy"] = 0.62 + np.random.default_rng(2).normal(0, 0.001, 10)
    trials["validation_score"] = np.where(ce & other, 0.599, 0.6)
    return trials.assign(counts=~other, learning_rate=np.where(other, changed_rate, 0.01))


class TestSettings:
    def test_a_lead_that_hangs_on_a_rate_is_no_evidence(self):
        trials = hanging(changed_rate=0.1)
        assert recommend(counted_runs(trials)).sure == "strong evidence"
        advice = recommend(counted_runs(trials), trials=trials, validation_rows=150)
        assert (advice.loss, advice.sure) == ("ce", DEPENDS)
        assert (
            "but that depends on the setting: with the largest of its good learning rates ce comes to within +0."
            in (advice.evidence[0])
        )
        assert "of bi-tempered." in advice.evidence[0]
        assert advice.would_change[0].startswith("More validation rows or more trials")

    def test_which_setting_is_said(self):
        trials = hanging(changed_rate=0.001)
        advice = recommend(counted_runs(trials), trials=trials, validation_rows=150)
        assert "with the smallest of its good learning rates ce comes to within" in advice.evidence[0]

    def test_enough_validation_rows_settle_it(self):
        trials = hanging(changed_rate=0.1)
        assert recommend(counted_runs(trials), trials=trials, validation_rows=10**6).sure == "strong evidence"

    def test_a_lead_that_turns_round(self):
        trials = hanging(changed_rate=0.1)
        trials.loc[(trials["loss"] == "ce") & (trials["learning_rate"] == 0.1), "accuracy"] += 0.02
        advice = recommend(counted_runs(trials), trials=trials, validation_rows=150)
        assert "of its good learning rates ce turns it round: ce is then ahead by +" in advice.evidence[0]

    def test_a_loss_whose_own_lead_shrinks(self):
        trials = hanging(changed_rate=0.1)
        worse = (trials["loss"] == "bi-tempered") & (trials["learning_rate"] == 0.1)
        trials.loc[worse, "accuracy"] = 0.605
        trials = trials[(trials["loss"] != "ce") | trials["counts"]]
        advice = recommend(counted_runs(trials), trials=trials, validation_rows=150)
        assert "with the largest of its good learning rates bi-tempered is ahead by +0.5 points" in advice.evidence[0]
        assert advice.evidence[0].endswith(" only.")

    def test_another_loss_that_holds_is_recommended_instead(self):
        trials = hanging(changed_rate=0.1)
        sure = trials[trials["loss"] == "bi-tempered"].assign(loss="gce")
        sure["accuracy"] = 0.70 + np.random.default_rng(5).normal(0, 0.001, len(sure))
        both = pd.concat([trials, sure], ignore_index=True)
        advice = recommend(counted_runs(both), trials=both, validation_rows=150)
        assert (advice.loss, advice.sure) == ("gce", "strong evidence")
        assert any(line.startswith("bi-tempered is ahead of ce by") for line in advice.evidence)

    def test_a_lead_of_the_baseline_may_depend_on_the_setting_too(self):
        trials = hanging(changed_rate=0.1)
        trials["loss"] = trials["loss"].map({"ce": "gce", "bi-tempered": "ce"})
        advice = recommend(counted_runs(trials), trials=trials, validation_rows=150)
        assert (advice.loss, advice.sure) == ("ce", DEPENDS)

    @pytest.mark.parametrize(("best", "said"), [(0.1, False), (30.0, True), (0.01, True)])
    def test_a_learning_rate_at_the_end_of_those_tried_is_told(self, best, said):
        trials = trials_frame({"ce": [0.9], GCE: [0.9]}, noise=["none"], best_rate={"ce": best})
        advice = recommend(counted_runs(trials), trials=trials)
        line = f"The best learning rate of ce, {best:g}, is at the end of those tried; it may do better beyond."
        assert (line in advice.would_change) == said

    def test_a_search_that_failed_says_nothing(self):
        trials = trials_frame({"ce": [0.9], GCE: [0.95]}, noise=["none"]).assign(validation_score=np.nan)
        assert recommend(counted_runs(trials), trials=trials, validation_rows=100).loss == GCE
