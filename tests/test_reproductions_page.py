"""The page of reproductions is written from whatever has been run."""

import json

import pandas as pd
import pytest

from evidence.papers.__main__ import TABLES
from evidence.papers.battash import CONTROL, ranking
from evidence.papers.page import page
from evidence.papers.published import BATTASH, BERRADA_NOISE, KORNBLITH_TITLES, STAATS_FASHION

NOISES = ("none", "uniform(0.2)", "uniform(0.4)", "uniform(0.6)")


def accuracy(losses, noises, **more):
    """Return accuracies of all losses, of which the first falls with noise."""
    return pd.DataFrame(
        [
            {"loss": loss, "noise": noise, "seed": seed, "choice": choice, "epoch": epoch, "learning_rate": 0.1, **more}
            | {"accuracy": 0.9 - 0.1 * level * (place == 0) - place / 100 + seed / 1000, "top5": 0.95}
            for place, loss in enumerate(losses)
            for level, noise in enumerate(noises)
            for seed in range(2)
            for choice in ("clean", "noisy")
            for epoch in ("last", "best")
        ]
    )


def shares():
    rows = [
        {"noise": noise, "loss": loss, "seed": seed, "right": right + seed / 100}
        for noise in ("noise-free", "random noise")
        for loss, right in (("logistic", 0.8), ("bi-tempered", 0.9))
        for seed in range(3)
    ]
    return pd.DataFrame(rows)


def ranked(name):
    losses = [*BATTASH[name], CONTROL]
    rows = [
        {"table": f"t{n}", "loss": loss, "accuracy": 0.8 + n / 50 + p / 100} for n in range(4) for p, loss in enumerate(losses)
    ]
    return ranking(pd.DataFrame(rows))


def measures():
    rows = [
        {"loss": loss, "seed": 0, "accuracy": 0.9, "r2 cosine": place / 10, "transfer": 0.9 - place / 100}
        for place, loss in enumerate(KORNBLITH_TITLES)
    ]
    correlations = {"of": "r2 cosine", "with": "transfer", "objectives": 9, "r": -0.98, "low": -1.0, "high": -0.9}
    return {"measures": pd.DataFrame(rows), "correlations": pd.DataFrame([correlations])}


@pytest.fixture
def everything(tmp_path):
    within = ["none", *(f"uniform-within-groups({share})" for share in (0.2, 0.4))]
    overlaps = [{"classes": 100, "noise": noise, "loss": "ce", "accuracy": 0.9, "overlap": 1.0} for noise in NOISES[:2]]
    found = {
        "amid-figure-2": {"shares": shares()},
        "amid-mnist": {"accuracy": accuracy(["ce", "bi-tempered(t1=0.5, t2=4.0)"], ["none", "symmetric(0.2)", "symmetric(0.4)"])},
        "staats-fashion": {"accuracy": accuracy(list(STAATS_FASHION), NOISES)},
        "staats-many-classes": {
            "overlap": pd.DataFrame(overlaps),
            "correlation": pd.DataFrame([{"classes": 100, "noise": "none", "losses": 11, "rho": 0.5, "low": -0.1, "high": 0.9}]),
        },
        "staats-cifar-10n": {"accuracy": accuracy(["ce", "mae", "sce"], ["none", "worst"])},
        **{name: ranked(name) for name in BATTASH},
        "battash-escaping": {
            "efficiency": pd.DataFrame(
                [
                    {"table": "wine", "seed": s, "loss": loss, "efficiency": e, "times_ce": e / 2}
                    for s in (0, 1)
                    for loss, e in (("ce", 2), ("el", 1), ("ce-el", 3))
                ]
            )
        },
        "battash-texts": {"accuracy": accuracy(["ce", "ce-el"], ["none"], network="lstm50", texts="tweets")},
        **{name: measures() for name in ("kornblith-fashion", "kornblith-cifar-10")},
        "berrada-noise": {"accuracy": accuracy(list(BERRADA_NOISE["top5"]), within)},
        "berrada-rows": {"accuracy": accuracy(["ce", "smooth-topk(k=5, tau=0.1)"], ["none"], share=5)},
    }
    assert found.keys() == TABLES.keys()
    for name, frames in found.items():
        (tmp_path / name).mkdir()
        for each, frame in frames.items():
            frame.to_csv(tmp_path / name / f"{each}.csv", index=False)
        (tmp_path / name / "settings.json").write_text(json.dumps({"smaller": {}, "finished": name != "amid-mnist"}))
    return tmp_path


def test_ours_stand_beside_theirs(everything, tmp_path):
    text = page(everything, tmp_path)
    flat = " ".join(text.split())
    assert "`ce` | 90.05 ± 0.05 (90.20) | 80.05 ± 0.05 (79.54)" in flat  # Fashion-MNIST, and the paper
    assert "| noise-free | 81.00 ± 0.58 | 91.00 ± 0.58 | +10.0 (" in flat  # figure 2
    assert "3 of 3" in flat
    assert "2 of 2" in flat  # networks with CE+EL > CE > EL
    assert "r of r2 cosine and transfer: -0.98" in flat
    assert "begun: no result yet" in flat
    assert "Not run yet" not in flat
    assert len(list(tmp_path.glob("reproduction-*.png"))) == 5


def test_what_was_not_run_is_said(tmp_path):
    text = page(tmp_path, tmp_path)
    assert text.count("Not run yet: ") == len(TABLES)
    assert not list(tmp_path.glob("*.png"))
