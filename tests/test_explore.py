"""The page of ``lossmith explore``, opened in a real browser; its mathematics against the Python library."""

import json
import math
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from lossmith import make_loss
from lossmith.command_line import main
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.ready import ready_expression
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.report.explore import write_explorer
from lossmith.report.explore.sliders import catalogue

EXPLORED = [name for name, loss in LOSSES.items() if not issubclass(loss, WrapperLoss)]
PARAMETERS = {
    "gce": ["q=0", "q=0.3", "q=1"],
    "truncated-gce": ["q=0.5, k=0", "q=0, k=0.2", "q=1, k=0.9"],
    "agce": ["b=0, q=0.5", "b=0.00001, q=0.5", "b=1.8, q=3", "b=0, q=0"],
    "sce": ["alpha=0, beta=2, log_zero=-7", "alpha=6, beta=0.1"],
    "focal": ["gamma=0", "gamma=0.5", "gamma=5, alpha=0.25"],
    "tamed-ce": ["alpha=0", "alpha=1", "alpha=1.7"],
    "ce-el": ["focus=0.25", "focus=0.5", "alpha=0.5, beta=2"],
    "bi-tempered": [
        "t1=1, t2=1",
        "t1=0.5, t2=4",
        "t1=0.9, t2=1.05",
        "t1=1.3, t2=2",
        "t1=0.2, t2=0.5",
        "t1=0, t2=0",
        "t1=0.5, t2=1",
    ],
    "tsallis": ["t1=1, t2=1", "t1=0.5, t2=4", "t1=1.5, t2=1.3", "t1=0.3, t2=0.6"],
    "nf": ["gamma=0", "gamma=2", "gamma=0.5, printed=true", "gamma=1.5, printed=true"],
    "nce-mae": ["alpha=0, beta=1", "alpha=3, beta=0"],
    "nf-mae": ["alpha=1, beta=0.2"],
    "nce-agce": ["alpha=10, beta=0.1, b=1.8, q=3", "alpha=100, beta=0.7, b=0.05, q=0.05"],
    "smooth-topk": ["k=1, tau=1, margin=0", "k=2, tau=0.05, margin=1", "k=2, tau=0.5, margin=0.3"],
    "hard-topk": ["k=1, margin=0.5", "k=2, margin=0"],
    "label-smoothing": ["alpha=0", "alpha=0.5"],
    "logit-penalty": ["beta=0", "beta=0.3"],
    "logit-norm": ["tau=1", "tau=0.3"],
    "squared-error": ["kappa=6, target=12, scale=3"],
    "cot": ["gamma=0", "gamma=0.01"],
    "ldam": ["max_margin=0, scale=1, imbalance=1", "max_margin=0.5, scale=10, beta=0.999, imbalance=0.01"],
    "asl": ["gamma_pos=0, gamma_neg=0, clip=0", "gamma_pos=2, gamma_neg=1, clip=0.3"],
    "poly": ["epsilon=0", "epsilon=-1", "epsilon=6"],
    "balanced-softmax": ["imbalance=1", "imbalance=0.001"],
}
NEEDS_CLASSES = {"smooth-topk": 6, "hard-topk": 6}  # the default is k = 5


def expressions(name):
    return [ready_expression(name), *(f"{name}({written})" for written in PARAMETERS.get(name, []))]


def batches(name):
    """Logits of several class counts, some of a fresh network and some of a sure one, with a target for each row."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    for count in (2, 3, 10, 100):
        if count < NEEDS_CLASSES.get(name, 2):
            continue
        rows = np.concatenate([scale * random.standard_normal((2, count)) for scale in (0.1, 1.0, 5.0, 20.0)])
        targets = random.integers(count, size=len(rows))
        targets[::2] = rows[::2].argmax(1)
        yield rows, targets


def in_python(expression, rows, targets):
    """Return the values and gradients of a loss, by autograd in double precision."""
    logits = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    values = make_loss(expression, reduction="none")(logits, torch.tensor(targets))
    (gradients,) = torch.autograd.grad(values.sum(), logits)
    return values.detach().numpy(), gradients.numpy()


IN_THE_PAGE = """(batches) => batches.map(([text, rows, targets]) => {
    const { name, parameters } = readLoss(text);
    const computed = rows.map((row, i) => valueAndGradient(name, Float64Array.from(row), targets[i], parameters));
    return [computed.map(({ value }) => value), computed.map(({ gradient }) => Array.from(gradient))];
})"""


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return write_explorer(tmp_path_factory.mktemp("explore") / "explore.html")


@pytest.fixture
def open_page(page, observed, file):
    """Opens the page at an address and waits until all is drawn; at the end nothing may have gone wrong."""

    def open_at(fragment=""):
        page.goto(f"{file.as_uri()}{fragment}")
        drawn(page)
        return page

    yield open_at
    assert observed.errors == []
    assert observed.requests == []


@pytest.fixture(scope="module")
def evaluate(chromium, file):
    """Evaluates JavaScript with the functions of the page; it is opened once for all tests that only compute."""
    page = chromium.new_page()
    page.goto(file.as_uri())
    yield page.evaluate
    page.close()


def drawn(page):
    page.wait_for_selector("body[data-drawn=exact]")


def curve(page, chart, slot):
    return page.locator(f"#{chart}-plot .curve.slot-{slot}").get_attribute("d")


def slide(page, label, position, card=None):
    """Move a slider to a position as a user would, so that the page hears of it."""
    place = page.locator(".settings") if card is None else page.locator(".card[class*=slot-]").nth(card)
    place.get_by_label(label, exact=True).fill(str(position))
    drawn(page)


def test_every_loss_is_explored_and_no_other(evaluate):
    assert evaluate("Object.keys(catalogue.losses)") == EXPLORED
    assert sorted(evaluate("Object.keys(lossFunctions)")) == sorted(EXPLORED)


def test_mathematics_of_the_page(evaluate):
    """Value and gradient of every loss, to nine digits of each entry, or twelve of the largest entry of the gradient."""
    cases = [(expression, *batch) for name in EXPLORED for expression in expressions(name) for batch in batches(name)]
    computed = evaluate(IN_THE_PAGE, [(expression, rows.tolist(), targets.tolist()) for expression, rows, targets in cases])
    for (expression, rows, targets), (values, gradients) in zip(cases, computed, strict=True):
        expected_values, expected_gradients = in_python(expression, rows, targets)
        largest = np.abs(expected_gradients).max(1, keepdims=True)
        if "printed=true" in expression:  # in Python, too, a difference of numbers of order 1
            largest = np.maximum(largest, 1e-3)
        case = f"{expression} of {rows.shape[1]} classes"
        np.testing.assert_allclose(values, expected_values, rtol=1e-9, atol=1e-14, err_msg=case)
        error = np.abs(np.array(gradients) - expected_gradients)
        assert (error <= 1e-9 * np.abs(expected_gradients) + 1e-12 * largest).all(), case


@pytest.mark.parametrize("expression", ["bi-tempered(t1=2, t2=1)", "smooth-topk(k=3)", "hard-topk(k=3)"])
def test_what_is_not_defined_is_said_and_not_drawn(open_page, expression):
    page = open_page(f"#classes=3&loss=ce&loss={expression}")
    assert page.locator("#missing").inner_text().startswith("Not defined for 3 classes: ")
    assert curve(page, "loss", 0)
    assert curve(page, "loss", 1) == ""


def test_a_loss_that_never_pulls_has_an_axis_all_the_same(open_page):
    page = open_page("#classes=5&loss=complement-entropy")
    assert page.locator("#pull-plot text").all_text_contents()[-3:] == ["0.6", "0.8", "1"]
    assert page.locator("#numbers td").all_inner_texts() == ["0", "0 %", "0", "\N{EN DASH}"]


@pytest.mark.parametrize(("num_classes", "samples"), [(3, 40_000), (10, 20_000), (100, 4_000), (1000, 400)])
def test_average_error(evaluate, num_classes, samples):
    """Equation 3 against plain sampling: both are within 1 % of the largest average."""
    expressions = ["ce", "gce(q=0.7)", "bi-tempered(t1=0.8, t2=1.2)", "nce-agce(alpha=10.0, beta=0.1, b=1.8, q=3.0)", "sigmoid"]
    places = [-3.0, 0.0, 2.0, 4.0, 6.0, 9.0]
    computed = evaluate(
        """([texts, classes, places]) => texts.map((text) => {
            const { name, parameters } = readLoss(text);
            return averagePulls(name, parameters, classes, 1, places, DRAWS);
        })""",
        [expressions, num_classes, places],
    )
    rows = np.random.default_rng(0).standard_normal((samples, num_classes))
    for expression, pulls in zip(expressions, computed, strict=True):
        expected = [-mean_slope(expression, rows, place) for place in places]
        np.testing.assert_allclose(pulls, expected, atol=0.01 * max(expected), rtol=0, err_msg=expression)


def mean_slope(expression, rows, place):
    rows[:, 0] = place
    _, gradients = in_python(expression, rows, np.zeros(len(rows), dtype=int))
    return gradients[:, 0].mean()


@pytest.mark.parametrize(("expression", "num_classes", "error"), [("gce(q=0.7)", 100, -0.0282), ("gce(q=0.48)", 1000, -0.0286)])
def test_average_errors_of_the_paper(evaluate, expression, num_classes, error):
    """Generalised cross-entropy keeps its average error from 100 to 1000 classes when q falls from 0.7 to 0.48."""
    pull = evaluate(
        "([text, classes]) => averagePulls('gce', readLoss(text).parameters, classes, 1, [0], DRAWS)[0]",
        [expression, num_classes],
    )
    assert -pull == pytest.approx(error, rel=0.01)


@pytest.mark.parametrize(("num_classes", "bias"), [(2, 0.0), (10, 0.525), (100, 3.034), (1000, 5.358)])
def test_bias_for_any_number_of_classes(evaluate, num_classes, bias):
    """The solutions of equation 4 for a mean probability of 0.15, as plain sampling confirms."""
    computed = evaluate("(classes) => biasFor(classes, 1)", num_classes)
    assert computed == pytest.approx(bias, abs=0.02)
    logits = torch.randn(10**6 // num_classes, num_classes, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits[:, 0] += computed
    mean = logits.softmax(1)[:, 0].mean().item()
    assert mean == pytest.approx(max(0.15, 1 / num_classes), rel=0.05)


def test_a_slider_moves_the_curves_of_its_loss_only(open_page):
    page = open_page("#loss=ce&loss=gce")
    before = {(chart, slot): curve(page, chart, slot) for chart in ("loss", "pull", "average") for slot in (0, 1)}
    page.locator("#same-height").check()
    drawn(page)
    scaled = {place: curve(page, *place) for place in before}
    slide(page, "q", 0.2, card=1)
    assert page.locator("#cards code").all_inner_texts() == ["ce", "gce(q=0.2)"]
    for chart, slot in before:
        moved = curve(page, chart, slot) != scaled[chart, slot]
        assert moved == (slot == 1), (chart, slot)
    assert scaled["loss", 1] != before["loss", 1]


@pytest.mark.parametrize(("label", "position"), [("classes K", 0.3), ("spread σ of fresh logits", 0.9)])  # noqa: RUF001
def test_the_network_moves_every_average(open_page, label, position):
    page = open_page()
    before = [curve(page, "average", slot) for slot in range(4)]
    slide(page, label, position)
    assert all(curve(page, "average", slot) != old for slot, old in enumerate(before))


def test_a_bias_moves_the_network_and_not_the_curve(open_page):
    page = open_page("#loss=mae")
    before = curve(page, "average", 0)
    assert page.locator("#average-plot .shade").count() == 1
    slide(page, "logit bias ε", 0.5, card=0)
    assert page.locator("#average-plot .shade").count() == 2
    assert curve(page, "average", 0) == before
    assert page.locator("#cards code").inner_text() == "logit-bias(mae, epsilon=5.2)"
    assert page.locator("#average-plot .shade-label").all_text_contents() == ["fresh network", "with bias 5.2"]
    page.get_by_role("button", name="this K").click()
    assert page.locator("#cards code").inner_text() == "logit-bias(mae, epsilon=3.04)"


def test_a_number_beyond_the_slider_is_taken_and_one_beyond_the_range_is_not(open_page):
    page = open_page("#loss=focal")
    field = page.get_by_label("gamma γ, as a number")  # noqa: RUF001
    field.fill("40")
    drawn(page)
    assert page.locator("#cards code").inner_text() == "focal(gamma=40)"
    field.fill("-1")
    assert field.evaluate("(field) => field.validationMessage") == "gamma γ must be >= 0"  # noqa: RUF001
    assert page.locator("#cards code").inner_text() == "focal(gamma=40)"


def test_the_address_keeps_the_view(open_page):
    page = open_page()
    page.locator("#add-name").select_option("ce-el")
    page.locator(".card.slot-4").get_by_label("Given by").select_option("1")
    page.locator(".card.slot-4").get_by_label("beta β", exact=True).fill("0.25")
    page.locator("input[value=probability]").check()
    slide(page, "classes K", 0.5)
    address, expressions = page.url.partition("#")[2], page.locator("#cards code").all_inner_texts()
    assert expressions == ["ce", "gce(q=0.7)", "mae", "logit-bias(mae, epsilon=3)", "ce-el(alpha=1, beta=0.5)"]
    curves = [curve(page, chart, slot) for chart in ("loss", "pull", "average") for slot in range(5)]
    page.goto("about:blank")
    again = open_page(f"#{address}")
    assert again.locator("#cards code").all_inner_texts() == expressions
    assert [curve(again, chart, slot) for chart in ("loss", "pull", "average") for slot in range(5)] == curves
    for expression in expressions:
        assert make_loss(expression)


def test_a_link_with_mistakes_opens_with_the_rest(open_page):
    page = open_page("#classes=7&loss=nope&loss=gce(q=3)&loss=ce-el(focus=0.1,alpha=1)&loss=toString&loss=focal(k=1)&loss=mae")
    assert page.locator("#cards code").all_inner_texts() == ["mae"]
    assert page.locator("#complaints").inner_text() == (
        "Left out of this link: no loss is called so: nope; must be in [0, 1], got 3; ce-el cannot have all of focus, alpha;"
        " no loss is called so: toString; focal has no parameter k."
    )


def test_losses_are_added_exchanged_and_removed(open_page):
    page = open_page("#loss=ce")
    assert page.locator("#cards .remove").count() == 0
    page.locator("#add-name").select_option("nce-agce")
    page.get_by_label("Loss 1", exact=True).get_by_role("combobox").select_option("squared-error")
    page.get_by_label("Parameters published for 1000 classes").nth(1).click()
    drawn(page)
    assert page.locator("#numbers th").all_inner_texts() == [
        "squared-error(kappa=1, target=1, scale=1)",
        "nce-agce(alpha=100, beta=0.7, b=0.05, q=0.05)",
    ]
    page.locator("#cards .remove").first.click()
    drawn(page)
    assert page.locator("#numbers th").count() == 1
    assert page.locator("#average-plot .curve").count() == 1


def test_values_are_read_by_keyboard_and_by_pointer(open_page):
    page = open_page("#loss=ce&classes=2")
    probe = page.locator("#loss-probe")
    probe.focus()
    page.keyboard.press("ArrowRight")
    said = probe.get_attribute("aria-valuetext")
    place, value = (float(said.split()[i].strip(":").replace("\N{MINUS SIGN}", "-")) for i in (-3, -1))
    assert value == pytest.approx(math.log1p(math.exp(-place)), rel=0.01)  # the only other logit is 0
    page.keyboard.press("Tab")
    page.hover("#loss-plot", position={"x": 150, "y": 100})
    assert page.locator("#loss-readout").is_visible()
    assert page.locator("#loss-readout").inner_text().startswith("z = ")
    page.mouse.move(0, 0)
    assert page.locator("#loss-readout").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_looks(open_page, page, scheme, width):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    open_page("#classes=10&loss=ce&loss=gce&loss=mae&loss=nf&loss=focal&loss=nce")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for chart in ("loss", "pull", "average"):
        assert page.locator(f"#{chart}-plot .curve").count() == 6
    colors = page.evaluate("[...document.querySelectorAll('#loss-plot .curve')].map((curve) => getComputedStyle(curve).stroke)")
    paper = page.evaluate("getComputedStyle(document.querySelector('.chart')).backgroundColor")
    assert len(set(colors)) == 6
    assert all(contrast(color, paper) >= 3 for color in colors)  # what WCAG asks of graphics


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color):
    channels = [int(number) / 255 for number in color.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_every_control_has_a_name(open_page):
    page = open_page("#loss=nf&loss=ce-el&loss=smooth-topk&classes=10")
    unnamed = """[...document.querySelectorAll("input, select, button")].filter(
        (control) => !(control.labels?.length || control.ariaLabel || control.textContent.trim()))"""
    assert page.evaluate(f"{unnamed}.map((control) => control.outerHTML)") == []


def test_the_network_of_the_playground_has_the_gradient_of_torch(evaluate):
    """One pass over three examples; Adam's first step takes every weight by the rate against the sign of its gradient."""
    examples = [{"place": [0.3, -0.5], "label": 1}, {"place": [-1.0, 0.2], "label": 0}, {"place": [0.1, 0.9], "label": 1}]
    before, after = evaluate(
        """(examples) => {
            const network = new Network([2, 4, 3, 2], 1);
            const weights = () => network.layers.map((layer) => Array.from(layer.weights));
            const before = weights();
            network.train(examples, (z, y) => valueAndGradient("gce", z, y, { q: 0.7 }).gradient);
            return [before, weights()];
        }""",
        examples,
    )
    layers = [
        torch.tensor(weights, dtype=torch.float64).view(outputs, -1) for weights, outputs in zip(before, (4, 3, 2), strict=True)
    ]
    for layer in layers:
        layer.requires_grad_()
    signal = torch.tensor([example["place"] for example in examples], dtype=torch.float64)
    for i, layer in enumerate(layers):
        signal = signal @ layer[:, :-1].T + layer[:, -1]
        signal = signal.tanh() if i < 2 else signal
    make_loss("gce(q=0.7)")(signal, torch.tensor([example["label"] for example in examples])).backward()
    for layer, weights in zip(layers, after, strict=True):
        step = torch.tensor(weights, dtype=torch.float64).view_as(layer) - layer.detach()
        torch.testing.assert_close(step, -0.02 * layer.grad / (layer.grad.abs() + 1e-8))


# Within the page, so that however slow the machine is no training ends between looking at it and pausing it.
TRAIN_AND_PAUSE = """async () => {
  const button = document.querySelector("#train");
  button.click();
  while (!playground.learners[0].network.steps) await new Promise(requestAnimationFrame);
  const whileTraining = button.textContent;
  button.click();
  return [whileTraining, button.textContent, document.querySelector("#learners").dataset.training];
}"""


def test_the_playground_trains_and_pauses(open_page):
    page = open_page("#loss=gce&loss=smooth-topk")
    results = page.locator(".result")
    assert results.all_inner_texts() == ["not trained yet", "not defined for two classes"]
    assert page.evaluate(TRAIN_AND_PAUSE) == ["Pause", "Train", "paused"]
    assert "of the plane right" in results.first.inner_text()
    page.locator("#noise-kind").select_option("far")
    assert results.first.inner_text() == "not trained yet"


@pytest.mark.parametrize("name", EXPLORED)
def test_sliders_reach_what_was_published_and_leave_no_range(name):
    entry, loss = catalogue()["losses"][name], LOSSES[name]
    for parameter, spec in entry["parameters"].items():
        if spec["kind"] == "switch":
            continue
        published = [preset[parameter] for preset in entry["presets"].values()] + [spec["start"]]
        assert all(spec["low"] <= value <= spec["high"] for value in published)
        assert spec["lowest"] is None or spec["low"] >= spec["lowest"]
        assert spec["highest"] is None or spec["high"] <= spec["highest"]
    for form in entry["forms"]:
        given = {parameter: entry["parameters"][parameter]["start"] for parameter in form}
        assert [key for key, value in loss(**given).parameters_in_order().items() if value is not None] == form


def test_the_command_writes_one_file_that_needs_no_other(tmp_path, capsys):
    file = tmp_path / "new" / "page.html"
    assert main(["explore", "--output", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    text = file.read_text(encoding="utf-8")
    assert '<link rel="stylesheet"' not in text
    assert "src=" not in text
    assert len(text) < 200_000
    start = text.index("const catalogue = ") + len("const catalogue = ")
    assert json.loads(text[start : text.index(";\n", start)]) == json.loads(json.dumps(catalogue()))


def test_what_is_not_installed_is_named(monkeypatch, capsys):
    for name in ("lossmith.report.explore", "lossmith.report.explore.page"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["explore"]) == 2
    assert capsys.readouterr().err == "lossmith: explore needs jinja2, which is not installed: pip install 'lossmith[report]'.\n"


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["explore", "--output", str(tmp_path / "file" / "page.html")]) == 2
    assert capsys.readouterr().err.startswith("lossmith: ")
