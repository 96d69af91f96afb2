"""Signs that a run is not trained, and runs that must not be taken for such."""

import numpy as np
import pandas as pd
import pytest

from lossmith.statistics.untrained import untrained_losses, untrained_reason

EPOCHS = np.arange(1, 41)


def saturating(end: float, speed: float, start: float = 0.1) -> np.ndarray:
    """Return a curve that approaches its end by a factor of e in so many epochs."""
    return end - (end - start) * np.exp(-EPOCHS / speed)


def reason(curve: np.ndarray, *, commonest: float = 0.2, largest: float = 0.1, rows: int = 400, **behind: float) -> str:
    return untrained_reason(commonest, float(curve[-1]), largest, curve, rows, **behind)


class TestReason:
    def test_a_trained_run_has_none(self):
        assert reason(saturating(0.9, 4)) == ""

    @pytest.mark.parametrize(
        ("commonest", "largest", "said"), [(1.0, 0.3, True), (0.995, 0.3, True), (0.995, 0.97, False), (0.9, 0.3, False)]
    )
    def test_one_class(self, commonest, largest, said):
        assert (reason(np.full(40, 0.99), commonest=commonest, largest=largest) == "predicts one class") == said

    def test_no_better_than_the_largest_class(self):
        assert reason(np.full(40, 0.6), largest=0.6) == "no better than the largest class"
        assert reason(np.full(40, 0.61), largest=0.6) == ""

    @pytest.mark.parametrize(
        ("behind", "error", "said"), [(0.073, 0.02, True), (0.05, 0.02, False), (0.015, 0.001, False), (-0.1, 0.01, False)]
    )
    def test_behind_logistic_regression(self, behind, error, said):
        words = reason(saturating(0.8, 4), behind=behind, behind_error=error)
        assert words == ("7 points behind logistic regression on validation rows" if said else "")

    def test_without_a_reference(self):
        assert reason(saturating(0.8, 4), behind=np.nan, behind_error=np.nan) == ""

    @pytest.mark.parametrize(("speed", "said"), [(4, False), (8, False), (15, True), (60, True)])
    def test_rising_at_the_end(self, speed, said):
        curve = saturating(0.9, speed)
        assert (reason(curve, largest=0.05, rows=1000) == "still rising at the end") == said

    def test_the_last_gain_of_a_cosine_schedule_is_no_rise(self):
        # Steps too large cost ten points at half of training, until the rate falls to nearly none.
        rate = (1 + np.cos(np.pi * EPOCHS / 40)) / 2
        assert reason(saturating(0.95, 4) - 0.2 * rate, rows=5000) == ""

    def test_a_run_that_a_cosine_schedule_stopped_too_early_is_seen(self):
        # It learns as fast as its rate allows, and is at half of what it could reach when that is nothing.
        way = np.cumsum((1 + np.cos(np.pi * EPOCHS / 40)) / 2) / 20
        curve = 0.1 + 0.8 * way / 2
        assert curve[-4:].mean() - curve[28:32].mean() < 0.02
        assert reason(curve, rows=1000) == "still rising at the end"

    def test_few_rows_cannot_tell(self):
        curve = np.linspace(0.3, 0.6, 40)
        assert reason(curve, rows=1000) == "still rising at the end"
        assert reason(curve, rows=40) == ""

    def test_low_accuracy_alone_is_no_sign(self):
        assert reason(saturating(0.3, 3), largest=0.2) == ""  # hard data, or wrong labels in the validation rows

    @pytest.mark.parametrize("curve", [np.array([0.1, 0.9, 0.95]), np.full(40, np.nan), np.empty(0)])
    def test_curves_that_say_nothing(self, curve):
        assert untrained_reason(0.2, 0.9, 0.1, curve, 400) == ""

    def test_a_run_that_stopped_early(self):
        curve = saturating(0.9, 4)
        curve[30:] = np.nan
        assert untrained_reason(0.2, 0.9, 0.1, curve, 400) == ""

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"^untrained_reason: rows must be at least 1, got 0\.$"):
            reason(saturating(0.9, 4), rows=0)


class TestLosses:
    def frame(self, reasons: dict[str, list[str]]) -> pd.DataFrame:
        rows = [(loss, "none", seed, text) for loss, texts in reasons.items() for seed, text in enumerate(texts)]
        return pd.DataFrame(rows, columns=["loss", "noise", "seed", "untrained"])

    def test_at_least_half_of_the_replicates(self):
        one = "predicts one class"
        found = untrained_losses(self.frame({"ce": ["", "", "", ""], "mae": [one, one, "", ""], "gce": [one, "", "", ""]}))
        assert found.to_dict("records") == [{"noise": "none", "loss": "mae", "untrained": 2, "replicates": 4, "reason": one}]

    def test_the_most_frequent_reason_with_its_mean_number(self):
        behind = "{} points behind logistic regression on validation rows"
        texts = ["still rising at the end", behind.format(10), behind.format(21)]
        assert untrained_losses(self.frame({"mae": texts}))["reason"].item() == behind.format(16)

    def test_levels_and_data_sets(self):
        frame = self.frame({"mae": ["predicts one class"] * 2})
        noisy = frame.assign(noise="symmetric(0.2)", untrained="")
        assert untrained_losses(pd.concat([frame, noisy]))["noise"].tolist() == ["none"]
        assert untrained_losses(frame.assign(data="wine"), by=("data",))["data"].tolist() == ["wine"]

    def test_studies_of_the_first_format(self):
        assert untrained_losses(self.frame({"mae": [""]}).drop(columns="untrained")).empty
        assert untrained_losses(self.frame({"mae": ["", ""]}).assign(untrained=None)).empty
