"""Parameters for another number of classes, advice, and their commands."""

import json

import pytest
import torch

from lossmith import advise, make_loss
from lossmith.command_line import main
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import needs_no_data
from lossmith.losses.contract.adjustable import adjustable_numbers
from lossmith.plots import FIGURES, early_learning
from lossmith.plots import solution_map as solution_map_figure
from lossmith.theory import NoSolutionError, average_error, overlap, solution_map, transfer_parameters
from lossmith.theory.advice_table import table

SAMPLES = 128


def test_q_of_the_paper():
    found = transfer_parameters("gce(q=0.7)", from_classes=100, to_classes=1000, solve="q")
    assert found.parameters["q"] == pytest.approx(0.48, abs=0.01)
    assert 0 < found.standard_error < 1e-3
    assert found.target == pytest.approx(-0.0282, abs=1.5e-4)
    assert found.loss.q == found.parameters["q"]


def test_the_standard_error_of_a_parameter_is_its_spread_over_seeds():
    found = [transfer_parameters("gce", 20, 200, "q", samples=100, seed=seed) for seed in range(12)]
    spread = torch.tensor([each.parameters["q"] for each in found]).std().item()
    assert spread == pytest.approx(found[0].standard_error, rel=0.6)


@pytest.mark.parametrize(
    ("expression", "solve", "classes"),
    [
        ("logit-bias(mae, epsilon=0.5)", "epsilon", (10, 300)),
        ("nf-mae@100", "alpha", (100, 300)),
        ("bi-tempered", "t1", (20, 60)),
        ("tamed-ce", "alpha", (20, 60)),
        ("1.0*nce + 20.0*gce(q=0.6)", "q", (20, 60)),
        ("1.0*nce + 2.0*gce(q=0.6)", "factors.1", (20, 60)),
        ("agce@100", "q", (300, 100)),
    ],
)
def test_any_parameter_of_any_loss_keeps_the_average_error(expression, solve, classes):
    found = transfer_parameters(expression, *classes, solve, samples=SAMPLES)
    before = average_error(expression, classes[0], samples=SAMPLES).value
    after = average_error(found.loss, classes[1], samples=SAMPLES).value
    assert float(after) == pytest.approx(float(before), rel=2e-3)
    assert found.target == pytest.approx(float(before), rel=1e-6)
    (path,) = found.parameters
    assert adjustable_numbers(found.loss)[path].get() == found.parameters[path]


def test_the_same_number_of_classes_changes_nothing():
    found = transfer_parameters("gce(q=0.7)", 50, 50, "q", samples=SAMPLES)
    assert found.parameters["q"] == pytest.approx(0.7, abs=1e-4)
    assert found.shape_change < 1e-3


def test_the_given_loss_is_not_changed():
    loss = make_loss("gce(q=0.7, reduction=sum)")
    found = transfer_parameters(loss, 20, 60, "q", samples=16)
    assert (loss.q, found.loss.reduction) == (0.7, "sum")


def test_no_solution_says_so_and_suggests_the_bias():
    with pytest.raises(NoSolutionError) as caught:
        transfer_parameters("agce(b=0.6, q=0.6)", 10, 1000, "q", samples=32)
    message = str(caught.value)
    assert message.startswith("transfer_parameters: no q in [0.0006, 600] gives agce(b=0.6, q=0.6) the average error -0.07")
    assert message.endswith("use a logit bias: logit-bias(agce(b=0.6, q=0.6), epsilon=5.36).")
    with pytest.raises(NoSolutionError, match=r"; it learns faster there as it is\.$"):
        transfer_parameters("gce(q=0.7)", 100, 10, "q", samples=32)
    with pytest.raises(NoSolutionError, match=r"has no average error at 100 classes, hence none to keep\.$"):
        transfer_parameters("truncated-gce", 100, 1000, "q", samples=16)


def test_two_parameters():
    ranges = {"q": (0.02, 1.0), "b": (0.01, 1.0)}
    options = {"reference": "nce-agce@100", "ranges": ranges, "samples": 16}
    found = transfer_parameters("nce-agce@1000", 100, 1000, ("q", "b"), **options)
    changes = [each.shape_change for each in found]
    assert changes == sorted(changes)
    for each in (found[0], found[-1]):
        assert float(average_error(each.loss, 1000, samples=16).value) == pytest.approx(each.target, rel=2e-3)
    # The paper's solution, q = b = 0.05, is near the line.
    nearest = min(abs(each.parameters["q"] / 0.05 - 1) + abs(each.parameters["b"] / 0.05 - 1) for each in found)
    assert nearest < 0.2


def test_no_solution_for_two_parameters():
    with pytest.raises(NoSolutionError, match=r"^transfer_parameters: no q in \[1, 2\] and b in \[1, 2\] gives agce"):
        transfer_parameters("agce@100", 20, 60, ("q", "b"), ranges={"q": (1, 2), "b": (1, 2)}, samples=8)


def test_a_map_holds_what_it_says():
    found = solution_map("nce-agce@100", 100, 300, ("alpha", "beta"), points=4, samples=16)
    assert found.names == ("alpha", "beta")
    assert (found.first[0], found.first[-1]) == (pytest.approx(0.01), pytest.approx(10_000))
    loss = make_loss("nce-agce@100")
    loss.alpha, loss.beta = float(found.first[2]), float(found.second[1])
    assert float(found.errors[2, 1]) == pytest.approx(float(average_error(loss, 300, samples=16).value), rel=1e-5)
    assert found.line.shape[1] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gce", 100, 1000, "p"), "transfer_parameters: unknown parameter 'p'; known are q, label_smoothing."),
        (("gce", 1, 1000, "q"), "transfer_parameters: from_classes must be >= 2, got 1."),
        (("gce", 100, 0, "q"), "transfer_parameters: to_classes must be >= 2, got 0."),
        (("gce", 100, 0, ("q", "label_smoothing")), "solution_map: to_classes must be >= 2, got 0."),
        (("agce", 10, 100, ("q", "q")), "solution_map: solve must name two parameters, got ('q', 'q')."),
        (("agce", 10, 100, ("q", "b", "q")), "solution_map: solve must name two parameters, got ('q', 'b', 'q')."),
        ((abs, 10, 100, "q"), "transfer_parameters: loss must be text or a lossmith loss, got builtin_function_or_method."),
    ],
)
def test_bad_transfers(arguments, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        transfer_parameters(*arguments)
    assert str(caught.value) == message


@pytest.fixture(scope="module")
def many_classes():
    return advise(1000, noise=0.2, losses=["ce", "mae", "gce", "nf-mae", "nce", "truncated-gce", "bi-tempered"])


def test_advice_for_a_thousand_classes(many_classes):
    found = {each.loss.split("(")[0]: each for each in many_classes.candidates}
    verdicts = {name: each.verdict for name, each in found.items()}
    assert verdicts == {
        "ce": "learns",
        "mae": "stalls",
        "gce": "slow",
        "nf-mae": "stalls",
        "nce": "weak",
        "truncated-gce": "stalls",
        "bi-tempered": "learns",
    }
    assert found["mae"].use == "logit-bias(mae, epsilon=5.36)"
    assert make_loss(found["gce"].use).q == pytest.approx(0.48, abs=0.01)
    assert (found["gce"].bounded, found["ce"].bounded, found["nce"].symmetric, found["gce"].symmetric) == (
        True,
        False,
        True,
        False,
    )
    assert found["truncated-gce"].use == found["truncated-gce"].loss
    assert not found["truncated-gce"].learns
    for each in many_classes.candidates:
        assert each.use_overlap == pytest.approx(overlap(each.use, 1000), rel=0.03)
    assert found["ce"].wrong_label_share == pytest.approx(0.2, abs=0.01)


def test_recommendations_learn_resist_and_name_their_evidence(many_classes):
    names = [each.loss for each in many_classes.recommendations]
    assert names == ["gce(q=0.48)", "logit-bias(mae, epsilon=5.36)", "ce"]
    assert all("overlap" in each.reason and "of the pull" in each.reason for each in many_classes.recommendations)
    assert advise(1000, losses=["mae", "gce", "ce", "nce"]).recommendations[0].loss == "ce"


def test_advice_solves_for_a_number_of_classes_that_nobody_published():
    (found,) = advise(400, 0.1, ["gce"]).candidates
    expected = transfer_parameters("gce(q=0.7)", 100, 400, "q").parameters["q"]
    assert (found.verdict, found.learns) == ("slow", True)
    assert make_loss(found.use).q == pytest.approx(expected, abs=0.005)  # a percent of the error is 0.002 of q
    assert found.correction.startswith("q keeps the average error -0.028")
    assert found.correction.endswith(" of gce(q=0.7) at 100 classes")


def test_advice_for_few_classes():
    found = {each.loss.split("(")[0]: each for each in advise(3).candidates}
    assert set(found) == set(filter(needs_no_data, LOSSES))
    assert found["smooth-topk"].verdict == "unfit"
    assert "k must be" in found["smooth-topk"].correction
    assert found["mae"].verdict == "learns"


def test_the_command(capsys):
    assert main(["advise", "--classes", "200", "--noise", "0.3", "--loss", "gce(q=0.9)", "--loss", "hard-topk(k=300)"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("200 classes, 30% wrong labels, logits of spread 1\n\nloss ")
    assert "gce(q=0.9)" in shown
    assert "unfit" in shown
    assert "\nRecommended by theory\n1. " in shown


def test_json(capsys):
    assert main(["advise", "--classes", "50", "--loss", "ce", "--loss", "mae", "--json"]) == 0
    advice = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [each["loss"] for each in advice["candidates"]] == ["ce", "mae"]
    assert (advice["num_classes"], advice["candidates"][0]["bound"], advice["candidates"][1]["bound"]) == (50, None, 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--classes", "1"], "advise: num_classes must be >= 2, got 1."),
        (["--classes", "10", "--noise", "1"], "advise: noise must be in [0, 1), got 1.0."),
        (["--classes", "10", "--noise", "-0.1"], "advise: noise must be in [0, 1), got -0.1."),
        (["--classes", "10", "--reference-classes", "0"], "advise: reference_classes must be >= 2, got 0."),
        (["--classes", "10", "--sigma", "nan"], "advise: sigma must be > 0, got nan."),
        (
            ["--classes", "10", "--loss", "gec"],
            "make_loss: unknown loss 'gec' in 'gec'; did you mean 'gce'? 'lossmith list' names all.",
        ),
    ],
)
def test_bad_commands_get_one_line(arguments, message, capsys):
    assert main(["advise", *arguments]) == 2
    assert capsys.readouterr().err == f"lossmith: {message}\n"


def test_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(early_learning, "POINTS", 5)
    monkeypatch.setattr(solution_map_figure, "POINTS", 3)
    assert main(["figure", "early-learning", "--classes", "10", "120", "--output", str(tmp_path)]) == 0
    assert main(["figure", "solution-map", "--output", str(tmp_path)]) == 0
    files = capsys.readouterr().out.split()
    assert len(files) == 4
    assert all((tmp_path / file).stat().st_size > 10_000 for file in files)


def test_only_some_figures_take_classes(tmp_path, capsys):
    assert main(["figure", "focus", "--classes", "10", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "lossmith: figure: focus takes no --classes, only early-learning does.\n"
    assert main(["figure", "early-learning", "--classes", "1", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "lossmith: figure: --classes must be >= 2, got 1.\n"
    assert {name for name, figure in FIGURES.items() if figure.takes_classes} == {"early-learning"}


@pytest.mark.parametrize(("classes", "noise", "hopeless"), [(10, 0.89, False), (10, 0.9, True), (2, 0.5, True), (2, 0.49, False)])
def test_noise_that_no_loss_survives_is_said_to_be(classes, noise, hopeless):
    advice = advise(classes, noise, ["ce", "gce"])
    assert advice.is_hopeless == hopeless
    assert ("no loss can tell" in table(advice)) == hopeless


def test_advice_tells_how_far_it_is():
    told = []
    advise(10, losses=["ce", "mae"], progress=lambda *news: told.append(news))
    assert told == [(0, 2, "ce"), (1, 2, "mae")]


def test_samples_are_checked_and_may_depend_on_the_number_of_classes():
    with pytest.raises(ValueError, match="samples must be >= 2, got 0"):
        transfer_parameters("gce", 20, 200, "q", samples=0)
    asked = set()
    found = transfer_parameters("gce", 20, 200, "q", samples=lambda classes: asked.add(classes) or 100)
    assert found.parameters == transfer_parameters("gce", 20, 200, "q", samples=100).parameters
    assert asked == {20, 200}
