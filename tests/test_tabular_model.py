"""The network for tables, and what it takes from the training rows."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lossmith import compare
from lossmith.data import load_data
from lossmith.data.column_scales import column_scales
from lossmith.studies.design.suitable_model import suitable_model
from lossmith.training.models.named_models import make_backbone
from lossmith.training.models.tabular import MOST_WAVES, NumberWaves


def test_scales_come_from_the_bulk_of_numbers_and_leave_marks_out() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(5.0, 2.0, (2001, 3)))
    rows[:, 1] = (rows[:, 1] > 5).double()
    rows[:20] *= 1e6
    numbers, centre, scale = column_scales(rows)
    assert numbers.tolist() == [0, 1, 2]  # the marks have outliers, and are hence numbers
    rows[:20, 1] = 1.0
    numbers, centre, scale = column_scales(rows)
    assert numbers.tolist() == [0, 2]
    # The median of 2,000 has a deviation of 0.056, that of the quartiles is 0.06; 1 % of outliers shifts both by 0.03 or so.
    assert (centre - 5).abs().max() < 0.3
    assert (scale - 2).abs().max() < 0.3


def test_a_column_with_equal_quartiles_is_scaled_by_its_deviation() -> None:
    rows = torch.zeros(100, 1)
    rows[:5, 0] = torch.arange(1.0, 6.0)
    assert column_scales(rows).scale.item() == pytest.approx(float(rows.std(correction=0)))


def test_waves_tell_near_numbers_apart_and_survive_far_ones() -> None:
    rows = torch.randn(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    waves = NumberWaves(column_scales(rows))
    steep = torch.autograd.functional.jacobian(waves, torch.tensor([0.3, -0.2], dtype=torch.double))
    # Every wave is as steep as the slowest at most, and that a quarter of pi to a deviation.
    assert steep[2:].abs().max() < 1.05 * np.pi / 4 / float(waves.scales.scale.min())
    far = waves(torch.tensor([[1e30, -1e30]]))
    assert far[0, :2].tolist() == pytest.approx([5.0, -5.0], rel=1e-3)
    assert far.abs().max() <= 5


def waves_of(backbone: nn.Sequential) -> int:
    return sum(len(layer.frequencies) for layer in backbone if isinstance(layer, NumberWaves))


def test_wide_tables_have_fewer_waves_and_marks_have_none() -> None:
    widths = (MOST_WAVES // 6, MOST_WAVES // 4, MOST_WAVES // 2, MOST_WAVES // 2 + 1)
    assert [waves_of(make_backbone("tabular", (width,))) for width in widths] == [3, 2, 1, 0]
    marks = torch.eye(4)
    backbone = make_backbone("tabular", (4,), scales=lambda: column_scales(marks))
    assert waves_of(backbone) == 0
    assert backbone(marks).shape == (4, backbone.out_features)


def test_the_network_of_battash_is_as_wide_as_its_input() -> None:
    assert make_backbone("ixi", (2, 3)).out_features == 6


def rings() -> pd.DataFrame:
    """Three rings around one another in a table that has a mark, an outlier and a gap besides."""
    chance = np.random.default_rng(0)
    distance = chance.uniform(0, 3, 240)
    angle = chance.uniform(0, 2 * np.pi, 240)
    table = pd.DataFrame({"x": distance * np.cos(angle), "y": distance * np.sin(angle), "mark": chance.choice(["a", "b"], 240)})
    table.loc[7, "x"], table.loc[8, "y"] = 1e6, np.nan
    return table.assign(ring=[f"ring {int(each)}" for each in distance])


def test_tables_are_learnt_kept_and_read_back(tmp_path) -> None:
    table = rings()
    assert suitable_model(load_data(table, target="ring")) == "tabular"
    study = compare(
        table,
        target="ring",
        losses=["ce", "dropout(loss=gce)"],
        noise=[0],
        seeds=1,
        trials=4,
        epochs=60,
        keep=["weights"],
        output=tmp_path / "rings",
        progress=False,
        workers=1,
        references=False,
    )
    assert (study.settings.recipe.model, study.settings.recipe.optimizer) == ("tabular", "adamw")
    assert study.results.accuracy.min() > 0.75  # a linear model gets half of them
    data = study.load(0)
    for run, loss in zip(study.results.run, study.results.loss, strict=True):
        again = study.model(run)(data.inputs[data.test]).argmax(1)
        own = study.results.accuracy[study.results.loss == loss].item()
        assert (again == data.labels[data.test]).double().mean().item() == pytest.approx(own)
