"""The colours of losses: told apart among ten, by all eyes, on light and dark ground; and each loss has one on the whole page."""

import re
from itertools import combinations

import numpy as np
import pytest

from fake_study import TEN_LOSSES, full_study
from lossmith.report.colours import DARK, LIGHT
from lossmith.report.study_page import write_report

# How people without one kind of cone see linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
EYES = {
    "usual": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
LEAST = {"usual": 0.15, "no red": 0.11, "no green": 0.11, "no blue": 0.09}
"""Distances in Oklab; two per cent of the way from black to white, 0.02, is about what can just be seen side by side."""

CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OPPONENTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
GROUNDS = {"light": ("#fdfcfa", "#ffffff"), "dark": ("#14171a", "#1b1f23")}
PALETTES = {"light": LIGHT, "dark": DARK}


def linear(colour):
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def distance(first, second, eyes):
    places = [OPPONENTS @ np.cbrt(CONES @ np.clip(EYES[eyes] @ linear(colour), 0, 1)) for colour in (first, second)]
    return float(np.linalg.norm(places[0] - places[1]))


def contrast(first, second):
    dark, light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (first, second))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_knows_what_is_confused():
    assert distance("#000000", "#ffffff", "usual") == pytest.approx(1, abs=1e-3)
    assert distance("#b00000", "#5f5200", "usual") > 0.15
    assert distance("#b00000", "#5f5200", "no green") < 0.09


@pytest.mark.parametrize("scheme", PALETTES)
@pytest.mark.parametrize("eyes", EYES)
def test_ten_losses_are_told_apart(eyes, scheme):
    palette = PALETTES[scheme]
    assert len(set(palette)) == 10
    closest = min(combinations(palette, 2), key=lambda pair: distance(*pair, eyes))
    assert distance(*closest, eyes) >= LEAST[eyes], closest


@pytest.mark.parametrize("scheme", PALETTES)
def test_each_stands_out_from_the_ground(scheme):
    for ground in GROUNDS[scheme]:
        for colour in PALETTES[scheme]:
            assert contrast(ground, colour) >= 3, (ground, colour)  # WCAG AA for graphics and large letters


@pytest.mark.parametrize("scheme", PALETTES)
def test_a_loss_has_one_colour_on_the_whole_page(page, tmp_path, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(write_report(full_study(tmp_path, TEN_LOSSES, epochs=4)).as_uri())
    ground = [
        page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        for name in ("paper", "card")
    ]
    assert tuple(ground) == GROUNDS[scheme]
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('[data-series]')].flatMap((each) =>
            [...each.querySelectorAll('.line, .reach, .bar')].map((mark) => {
                const style = getComputedStyle(mark);
                return [each.dataset.series, mark.matches('.bar') ? style.backgroundColor : style.stroke];
            }))"""
    )
    by_loss = {}
    for number, colour in drawn:
        by_loss.setdefault(int(number), set()).add(colour)
    assert {number: written(colours) for number, colours in by_loss.items()} == dict(enumerate(PALETTES[scheme]))
    winner = page.evaluate("getComputedStyle(document.querySelector('h1 code')).color")
    assert page.inner_text("h1 code") == "gce(q=0.7)"
    assert written({winner}) == PALETTES[scheme][list(TEN_LOSSES).index("gce(q=0.7)")]


def written(colours):
    """Return the one colour of a set as #rrggbb."""
    (colour,) = colours
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])
