"""The advice that results give, from results whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from lossmith.statistics.recommendation import ALL_DIVERGED, NO_DIFFERENCE, NONE_BETTER, NOTHING, UNSTABLE, recommend
from study_frames import results_frame

GCE, SUM = "gce(q=0.7)", "1.0*nce + 20.0*mae"


def fail(results: pd.DataFrame, loss: str, seeds: int) -> pd.DataFrame:
    failed = (results["loss"] == loss) & (results["seed"] < seeds)
    return results.assign(diverged=failed, accuracy=results["accuracy"].mask(failed), ece=results["ece"].mask(failed))


def test_a_better_loss_is_recommended_with_its_numbers_and_costs():
    results = results_frame(
        {"ce": [0.90, 0.60], GCE: [0.90, 0.70], "mae": [0.6, 0.69]}, ece={GCE: 0.12}, seconds={"ce": 2.0, GCE: 5.0}
    )
    advice = recommend(results)
    assert (advice.loss, advice.sure, advice.baseline) == (GCE, "strong evidence", "ce")
    assert advice.parameters == {"q": 0.7}
    assert advice.learning_rate == 0.1
    means = results.groupby("loss")["accuracy"].mean()
    assert advice.evidence[0].startswith(
        f"gce(q=0.7) beats ce by +{100 * (means[GCE] - means['ce']):.1f} points (95 % interval +"
    )
    assert advice.evidence[0].endswith("on average over all noise levels, 5 seeds.")
    assert advice.costs[0].startswith("Calibration is worse: expected calibration error 0.12")
    assert advice.costs[1] == "Training takes 2.5 times as long as with ce."
    assert [(choice.noise, choice.loss) for choice in advice.by_noise] == [("none", "ce"), ("symmetric(0.4)", GCE)]
    assert advice.by_noise[0].sure == NONE_BETTER
    assert advice.would_change == ("More wrong labels than 36 % were not tried.",)


def test_no_evidence_of_a_difference_keeps_the_baseline_and_says_how_many_seeds_it_takes():
    advice = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.904, 0.604]}, spread=0.01))
    assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
    assert advice.headline == "Stay with ce."
    assert advice.costs == ()
    assert advice.evidence[0].startswith(
        "No loss beats ce beyond chance on average over all noise levels; ahead is gce(q=0.7), at +"
    )
    words = advice.would_change[0].split()
    assert words[0] == "About"
    assert 5 < int(words[1]) < 1000


def test_losses_that_cannot_be_told_apart_are_named():
    advice = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.7], SUM: [0.9, 0.7]}))
    other = SUM if advice.loss == GCE else GCE
    assert advice.evidence[1] == f"Better than the baseline, too, and not told apart from it: {other}."
    assert advice.would_change[0] == f"More seeds could tell {advice.loss} from {other}."


def test_a_level_at_which_the_recommended_loss_is_worse_is_named():
    advice = recommend(results_frame({"ce": [0.90, 0.60], GCE: [0.85, 0.75]}))
    assert advice.loss == GCE
    assert advice.evidence[1].startswith("Without noise it is worse than ce: -")


def test_one_seed_says_nothing():
    advice = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.95, 0.9]}, seeds=1))
    assert (advice.loss, advice.sure) == ("ce", NOTHING)
    assert advice.evidence[0] == (
        "From 1 seed nothing can be said about differences. gce(q=0.7) has the best accuracy on average over all noise levels, "
        "which may be luck."
    )
    assert advice.would_change[0] == "More seeds: from one no spread can be told. Five are a good start."


def test_two_seeds_can_say_something_when_they_agree():
    results = results_frame({"ce": [0.5, 0.5], GCE: [0.9, 0.9]}, seeds=2, spread=0.001)
    assert recommend(results).loss == GCE


def test_the_same_difference_in_two_seeds_is_not_certain():
    results = results_frame({"ce": [0.5, 0.5]}, seeds=2)
    copy = results.assign(loss=GCE, accuracy=results["accuracy"] + 0.01)
    advice = recommend(pd.concat([results, copy], ignore_index=True))
    assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)
    assert advice.would_change[0] == "More seeds could show the lead of gce(q=0.7); how many cannot be told from these."


def test_equal_losses_keep_the_baseline():
    results = results_frame({"ce": [0.5, 0.5]})
    advice = recommend(pd.concat([results, results.assign(loss=GCE)], ignore_index=True))
    assert (advice.loss, advice.sure) == ("ce", NO_DIFFERENCE)


def test_the_baseline_can_be_better_than_all():
    advice = recommend(results_frame({"ce": [0.9, 0.7], GCE: [0.8, 0.6], "mae": [0.8, 0.5]}))
    assert (advice.loss, advice.sure) == ("ce", "strong evidence")
    assert advice.evidence[0].startswith("ce beats every other loss on average over all noise levels; next is gce(q=0.7), at -")


def test_a_loss_that_diverges_is_not_recommended():
    advice = recommend(fail(results_frame({"ce": [0.6, 0.5], GCE: [0.9, 0.9], "mae": [0.7, 0.6]}), GCE, seeds=1))
    assert advice.loss == "mae"
    assert "gce(q=0.7) diverged in 2 of 10 runs." in advice.evidence


def test_a_baseline_that_diverges_is_not_recommended_either():
    advice = recommend(fail(results_frame({"ce": [0.6, 0.5], GCE: [0.6, 0.5]}), "ce", seeds=2))
    assert (advice.loss, advice.sure) == (GCE, UNSTABLE)
    assert advice.evidence[0].startswith("ce diverged in 4 runs; of the losses that did not, gce(q=0.7) is best")


def test_nothing_is_recommended_where_every_loss_diverged():
    results = results_frame({"ce": [0.6, 0.5], GCE: [0.6, 0.5]})
    advice = recommend(results.assign(diverged=True, accuracy=np.nan, ece=np.nan))
    assert (advice.headline, advice.sure, advice.by_noise) == ("No loss to recommend.", ALL_DIVERGED, ())
    assert "smaller learning rates" in advice.evidence[0]
    assert str(advice).startswith("No loss to recommend. Every loss diverged")
    partly = recommend(fail(fail(results, "ce", seeds=2), GCE, seeds=1).assign(diverged=results["seed"] < 1))
    assert partly.sure == ALL_DIVERGED


def test_a_loss_with_missing_runs_is_not_recommended():
    results = results_frame({"ce": [0.6, 0.5], GCE: [0.9, 0.9], "mae": [0.6, 0.5]})
    advice = recommend(results.drop(results.query("loss == @GCE and seed == 0 and noise == 'none'").index))
    assert advice.loss == "ce"
    assert advice.evidence[1] == "gce(q=0.7) has 9 of 10 runs only."


def test_a_study_that_has_hardly_begun():
    results = results_frame({"ce": [0.6, 0.5], GCE: [0.9, 0.9]})
    advice = recommend(results[(results["loss"] == "ce") == (results["noise"] == "none")])
    assert (advice.loss, advice.sure) == ("ce", NOTHING)


def test_a_search_that_failed_says_nothing():
    searches = pd.DataFrame({"loss": "ce", "learning_rate": [0.1, 1.0, 10.0], "validation_accuracy": np.nan})
    assert recommend(results_frame({"ce": [0.6, 0.5], GCE: [0.9, 0.9]}), searches=searches).loss == GCE


def test_only_one_loss():
    advice = recommend(results_frame({"ce": [0.6, 0.5]}))
    assert (advice.loss, advice.sure) == ("ce", NOTHING)


def test_without_the_baseline_the_first_loss_takes_its_place():
    assert recommend(results_frame({"mae": [0.6, 0.5], GCE: [0.9, 0.9]})).baseline == "mae"


def test_a_metric_of_which_less_is_better():
    results = results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.6]}, ece={"ce": 0.1, GCE: 0.02})
    advice = recommend(results, metric="ece")
    assert advice.loss == GCE
    assert advice.evidence[0].startswith("gce(q=0.7) beats ce by -0.0")


def test_one_clean_level_says_that_noise_was_not_tried():
    advice = recommend(results_frame({"ce": [0.9], GCE: [0.95]}, noise=["none"], rates=[0.0]))
    assert advice.by_noise == ()
    assert advice.would_change == ("Wrong labels were not tried; with them the order often changes.",)
    assert "on average" not in str(advice)


@pytest.mark.parametrize(("best", "said"), [(0.01, False), (0.1, True)])
def test_a_learning_rate_at_the_end_of_the_search_is_told(best, said):
    rates = np.array([0.001, 0.01, 0.1])
    searches = pd.DataFrame({"loss": "ce", "learning_rate": rates, "validation_accuracy": np.where(rates == best, 0.9, 0.5)})
    advice = recommend(results_frame({"ce": [0.9, 0.6], GCE: [0.9, 0.6]}), searches=searches)
    line = "The best learning rate of ce, 0.1, is at the end of those searched; it may do better beyond."
    assert (line in advice.would_change) == said


def test_printed_form_is_short_and_plain():
    text = str(recommend(results_frame({"ce": [0.90, 0.60], GCE: [0.90, 0.70]})))
    assert text.splitlines()[0] == "Train with gce(q=0.7). Strong evidence."
    assert "\nCosts:\n" in text
    assert max(map(len, text.splitlines())) <= 100
    assert text.isascii()


def test_no_results():
    with pytest.raises(ValueError, match=r"^recommend: there are no results; no run of the study has finished\.$"):
        recommend(results_frame({"ce": [0.9, 0.6]}).iloc[:0])


def test_false_recommendations_are_as_rare_as_promised():
    # Six losses are the same in 40 studies: Holm allows a wrong recommendation in 5 % of them. Binomial: P(X > 7) < 0.001.
    rng = np.random.default_rng(1)
    keys = [(loss, seed) for loss in ("ce", "a", "b", "c", "d", "e") for seed in range(4)]
    frame = pd.DataFrame(keys, columns=["loss", "seed"]).assign(noise="none")
    wrong = sum(recommend(frame.assign(accuracy=rng.normal(0.8, 0.02, len(keys)))).loss != "ce" for _ in range(40))
    assert wrong <= 7
