"""Losses for rare classes: what they need to know of the data, who tells them, and what they become in special cases."""

import copy
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lossmith
from lossmith import LossmithClassifier, compare, make_loss, make_objective, open_study
from lossmith.data import load_data
from lossmith.data.class_balance import class_counts, weights_by
from lossmith.losses import class_balanced_weights
from lossmith.losses.contract.needs_data import is_complete
from lossmith.objectives.objective import filled_in
from lossmith.report import write_report
from lossmith.studies.class_frequencies import accuracy_by_frequency, frequency_groups
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.settings_words import command
from lossmith.studies.protocol.prepared_replicate import PreparedReplicate
from lossmith.theory import fitted_to_classes
from lossmith.training.recipe import Run

NEEDY = ["logit-adjusted", "balanced-softmax", "ldam", "ce + 2*balanced-softmax", "z-loss(logit-adjusted(focal))"]
COUNTS = [900, 90, 9]
QUICK = {"epochs": 2, "seeds": 2, "trials": 2, "references": False, "model": "linear", "progress": False}


def batch(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(30, 3, generator=generator, dtype=dtype), torch.arange(30) % 3


@pytest.mark.parametrize("expression", NEEDY)
def test_without_counts_one_line_says_what_is_needed(expression):
    with pytest.raises(
        ValueError, match=r"^\w+: counts must be given, the number of training rows of each class \(.*\), got None\.$"
    ):
        make_loss(expression)(*batch())


@pytest.mark.parametrize("expression", NEEDY)
def test_counts_given_to_make_loss_reach_every_loss_that_wants_them(expression):
    loss = make_loss(expression, counts=COUNTS)
    assert is_complete(loss)
    assert make_loss(repr(loss))(*batch()) == loss(*batch())
    assert make_loss(repr(loss), counts=[1, 1, 1])(*batch()) == loss(*batch())  # what was given stays
    assert copy.deepcopy(loss)(*batch()) == loss(*batch())


@pytest.mark.parametrize(
    ("counts", "error"),
    [
        ([3, 0, 1], "counts must be finite and > 0 for every class, got 0 for class 1"),
        ([3, float("inf")], "got inf for class 1"),
        ([[1, 2]], r"counts must be one number per class, got shape \(1, 2\)"),
        ([], r"got shape \(0,\)"),
    ],
)
def test_counts_that_are_none(counts, error):
    with pytest.raises(ValueError, match=error):
        make_loss("balanced-softmax", counts=counts)


def test_counts_of_other_classes_are_refused():
    for target in (torch.tensor([0, 1]), torch.eye(3)[:2]):
        with pytest.raises(ValueError, match="counts must hold 3 numbers, one per class of logits, got 2"):
            make_loss("logit-adjusted(gce)", counts=[1, 2])(torch.zeros(2, 3), target)
    with pytest.raises(ValueError, match="give either counts or imbalance, got both"):
        make_loss("ldam(imbalance=0.1, counts=[1, 2])")


def test_a_long_tail_is_counts_that_fall_in_equal_ratios():
    logits, target = batch()
    for name in ("logit-adjusted", "balanced-softmax", "ldam(beta=0.99)"):
        tail = make_loss(name, counts=[5000, 500, 50])
        given = make_loss(name.replace(")", ", imbalance=0.01)") if "(" in name else f"{name}(imbalance=0.01)")
        assert given(logits, target) == pytest.approx(tail(logits, target).item(), rel=1e-7)


def test_special_cases_are_cross_entropy():
    logits, target = batch()
    plain = make_loss("ce")(logits, target)
    equal = [7, 7, 7]
    for expression in ("logit-adjusted", "balanced-softmax", "ldam(max_margin=0, scale=1)"):
        torch.testing.assert_close(make_loss(expression, counts=equal)(logits, target), plain)
        torch.testing.assert_close(make_loss(expression, counts=COUNTS).eval()(logits, target), plain)
    assert make_loss("logit-adjusted(tau=0)", counts=COUNTS)(logits, target) == plain
    torch.testing.assert_close(make_loss("poly(epsilon=0)")(logits, target), plain)
    adjusted, balanced = (make_loss(name, counts=COUNTS)(logits, target) for name in ("logit-adjusted", "balanced-softmax"))
    torch.testing.assert_close(adjusted, balanced)
    torch.testing.assert_close(make_loss("poly(epsilon=2)")(logits, target), make_loss("ce-el(alpha=1, beta=2)")(logits, target))


def test_soft_targets_are_the_expected_loss():
    logits, _ = batch()
    probabilities = torch.softmax(logits.flip(1), 1)
    for expression in ("logit-adjusted(focal)", "balanced-softmax", "ldam(beta=0.9)"):
        loss = make_loss(expression, counts=COUNTS, reduction="none")
        every = torch.stack([loss(logits, torch.full((30,), label)) for label in range(3)], 1)
        torch.testing.assert_close(loss(logits, probabilities), (probabilities * every).sum(1))


def test_counts_keep_their_precision_and_go_where_the_loss_goes():
    loss = make_loss("balanced-softmax", counts=[100_000, 3, 1]).half()
    assert loss.counts.tolist() == [100_000, 3, 1]
    assert loss.to("meta").counts.is_meta
    assert list(make_loss("ldam", counts=COUNTS).state_dict()) == ["counts"]


def test_weights_by_effective_numbers():
    weights = class_balanced_weights([100, 10, 1], beta=0.9)
    effective = [(1 - 0.9**n) / 0.1 for n in (100, 10, 1)]
    expected = np.array([1 / e for e in effective])
    np.testing.assert_allclose(weights, 3 * expected / expected.sum(), rtol=1e-6)
    assert class_balanced_weights([5, 1], beta=0.0).tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"class_balanced_weights: beta must be in \[0, 1\], got 2"):
        class_balanced_weights([1], beta=2)
    labels = torch.tensor([0] * 9 + [2])
    torch.testing.assert_close(weights_by("effective(0.5)", labels, 3)[[0, 2]], class_balanced_weights([9, 1], 0.5))
    assert weights_by("effective", labels, 3)[1] == 0
    for wrong in ("evenly", "effective(x)", "effective(2)"):
        with pytest.raises(ValueError, match=r"compare: (beta of )?class_weight must be"):
            compare("iris", losses=["ce"], class_weight=wrong)


def test_deferred_weights_come_late():
    objective = filled_in(make_objective("ldam-drw"), {"counts": COUNTS})
    loss = copy.deepcopy(objective.loss)
    scheduler = objective.scheduler(loss, total=10)
    betas = []
    for _ in range(10):
        betas.append(loss.beta)
        scheduler.step()
    assert betas == [0.0] * 8 + [0.9999] * 2
    assert make_objective("ldam-drw").loss.counts is None  # an objective is not changed


def test_a_class_without_rows_has_a_count():
    assert class_counts(torch.tensor([0, 0, 2]), 4).tolist() == [2, 1, 1, 1]
    assert class_counts(torch.tensor([0, 1]), 3, torch.tensor([0.5, 0.25], dtype=torch.double)).tolist() == [0.5, 0.25, 0.25]


def uneven_data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 3)).astype("float32"), rng.choice(3, 200, p=[0.7, 0.2, 0.1])


def test_compare_fills_in_the_counts_of_each_replicate_and_noise():
    mine = lossmith.BalancedSoftmaxLoss()
    settings = Settings("", losses=("logit-adjusted(ce)", "mine"), noise=("none", "symmetric(0.4)"), seeds=2)
    found = []
    for seed in range(2):
        data = load_data(uneven_data(), replicate=seed)
        replicate = PreparedReplicate(settings, data, seed, {"mine": mine})
        for loss, noise in product(settings.losses, settings.noise):
            job = replicate._job(Run(loss, noise, seed, 0.1))
            trained = job.objective.loss if loss != "mine" else job.objective
            assert trained.counts.tolist() == torch.bincount(job.train_labels, minlength=3).tolist()
            found.append(tuple(trained.counts.tolist()))
    assert len(set(found)) == 3  # wrong labels differ between replicates; their plain splits are stratified
    assert mine.counts is None


def test_without_references_the_largest_class_is_judged_by_the_metric():
    """A loss for rare classes is less accurate than the largest class, and need not be untrained for that."""
    data = load_data(uneven_data())
    for metric, expected in (("accuracy", 0.65), ("balanced_accuracy", 1 / 3), ("macro_f1", 0.27)):
        replicate = PreparedReplicate(Settings("", losses=("ce",), noise=("none",), metric=metric), data, 0, {})
        found = replicate._of_largest_class("none", SimpleNamespace(references=list))
        assert found == pytest.approx(expected, abs=0.03)


def test_compare_trains_what_needs_counts(tmp_path):
    losses = ["ce", "logit-adjusted(ce)", "balanced-softmax + poly", "ldam-drw"]
    study = compare(uneven_data(), losses=losses, noise=[0.4], output=tmp_path, class_weight="effective", **QUICK)
    assert set(study.results["loss"]) == set(losses)


def test_the_classifier_fills_in_counts_and_keeps_what_it_was_given():
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], [40, 15, 5])
    loss = lossmith.BalancedSoftmaxLoss()
    found = LossmithClassifier(loss, epochs=1, random_state=0).fit(inputs, labels)
    assert found.loss_.counts.tolist() == [40, 15, 5]
    assert loss.counts is None
    assert LossmithClassifier("ldam-drw", epochs=2, random_state=0).fit(inputs, labels).predict(inputs).shape == (60,)


def test_training_of_ones_own_is_told_at_once():
    with pytest.raises(ValueError, match=r"balanced-softmax depends on the training rows, .*; give it counts=\.\.\."):
        compare(train=lambda trial: None, losses=["ce", "balanced-softmax"], seeds=2)


def test_the_number_of_classes_does_not_change_what_counts_decide():
    for expression in NEEDY:
        assert fitted_to_classes(expression, 3) == expression


# Long tails


def kept(imbalance, replicate=0, **settings):
    data = load_data("digits", imbalance=imbalance, replicate=replicate, **settings)
    return data, [np.bincount(data.labels[rows], minlength=10) for rows in (data.train, data.validation, data.test)]


@pytest.mark.parametrize(("imbalance", "rarest"), [("exponential(0.1)", 12), (0.05, 6), ("step(0.1)", 12), ("0.001", 1)])
def test_long_tails_have_their_ratio_and_leave_test_rows_alone(imbalance, rarest):
    (whole, (before, _, _)), (data, (train, validation, test)) = kept(None), kept(imbalance)
    assert (train.max(), train.min()) == (before.max(), rarest)
    assert validation.min() >= 1
    torch.testing.assert_close(data.test, whole.test)
    np.testing.assert_allclose(validation / validation.max(), train / train.max(), atol=0.06)
    assert any(note.startswith("imbalance ") and "test rows stay as they are" in note for note in data.notes)
    assert set(data.train.tolist()) <= set(whole.train.tolist())
    again, _ = kept(imbalance)
    torch.testing.assert_close(again.train, data.train)
    assert test.min() > 30


def test_exponential_tails_fall_in_equal_ratios_and_steps_fall_once():
    counts = np.sort(kept("exponential(0.1)")[1][0])[::-1]
    np.testing.assert_allclose(counts, counts[0] * 0.1 ** (np.arange(10) / 9), atol=0.51)
    assert sorted(kept("step(0.1)")[1][0] < 100) == [False] * 5 + [True] * 5


def test_what_a_long_tail_keeps_a_shorter_one_keeps_too():
    rows = [set(kept(ratio)[0].train.tolist()) for ratio in (0.01, 0.1, 0.5)]
    assert rows[0] < rows[1] < rows[2]
    assert rows[0] != set(kept(0.01, replicate=1)[0].train.tolist())


@pytest.mark.parametrize("wrong", ["x", 2, 0, "step(0)", "foo(0.1)", "0.1)extra", float("nan"), True, [0.1]])
def test_imbalances_that_are_none(wrong):
    with pytest.raises((TypeError, ValueError), match=r"^load_data: imbalance must be .*, got .*\.$"):
        load_data("iris", imbalance=wrong)
    with pytest.raises(ValueError, match=r"^compare: imbalance must be .*, got .*\.$"):
        settings_from({"imbalance": wrong})


def test_a_long_tail_is_judged_by_balanced_accuracy_unless_another_metric_is_given():
    assert settings_from({"imbalance": 0.01}).metric == "balanced_accuracy"
    assert settings_from({"imbalance": "0.01", "metric": "macro-f1"}).metric == "macro_f1"
    assert settings_from({"imbalance": "none"}).metric == settings_from({}).metric == "accuracy"
    assert "--imbalance 'exponential(0.01)'" in command(settings_from({"imbalance": 0.01}), Path("mine"))


def test_a_study_of_a_long_tail_with_wrong_labels_tells_frequent_from_rare(tmp_path):
    how = {"losses": ["ce", "balanced-softmax"], "imbalance": 0.05, "noise": [0, 0.2], "rates": [0.1], "rows": 600}
    study = compare("digits", output=tmp_path, **{**how, "epochs": 3, "seeds": 2, "references": False, "progress": False})
    assert study.metric == "balanced_accuracy"
    assert max(study.class_rows) > 15 * min(study.class_rows)
    found = study.accuracy_by_frequency()
    assert list(found.columns.unique(0))[:3] == ["many", "medium", "few"]
    assert list(found.index) == ["ce", "balanced-softmax"]
    sizes = {name: len(classes) for name, classes in frequency_groups(study.class_rows).items()}
    assert sizes == {"many": 3, "medium": 4, "few": 3}
    shares = sum(sizes[name] * found[name]["mean"] for name in sizes) / 10
    expected = study.results[study.results["noise"] == "none"].groupby("loss")["balanced_accuracy"].mean()
    np.testing.assert_allclose(shares, expected.loc[shares.index], rtol=1e-6)
    assert found["many"]["mean"]["ce"] > found["few"]["mean"]["ce"]
    page = write_report(study).read_text(encoding="utf-8")
    assert "Frequent and rare classes" in page
    open_again = open_study(tmp_path)
    assert open_again.class_rows == study.class_rows
    torch.testing.assert_close(open_again.load(1).train, study.load(1).train)


def test_groups_of_few_classes():
    assert frequency_groups((3, 2, 1)) == {"many": [0], "medium": [1], "few": [2]}
    with pytest.raises(ValueError, match="must know how many training rows each class has, got none"):
        accuracy_by_frequency(SimpleNamespace(class_rows=()), "none")
