"""Sparse rows: as inputs, in the first layer, and in training, where they give what written-out rows give."""

import numpy as np
import pytest
import torch
from scipy.sparse import random_array
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from lossmith import make_objective
from lossmith.data.prepared import PreparedData
from lossmith.data.sparse_rows import SparseRows
from lossmith.training.batches import Batch, Mixup
from lossmith.training.job import Job
from lossmith.training.loop import train_stack
from lossmith.training.merit import Merit
from lossmith.training.models.sparse_layers import SparseLinear, bag, fitting_inputs
from lossmith.training.race import Race
from lossmith.training.recipe import Recipe, Run
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.composition import compose_stacks
from lossmith.training.stacks.dropout_masks import DropoutMasks
from lossmith.training.stacks.lazy_adamw import LazyAdamW

RECIPE = Recipe(model="bag", optimizer="adamw", epochs=3, batch_size=16)


def sparse_data(rows: int = 120, columns: int = 60) -> PreparedData:
    draw = np.random.default_rng(0)
    inputs = SparseRows.of(random_array((rows, columns), density=0.08, format="csr", dtype=np.float32, rng=draw))
    labels = torch.from_numpy(inputs.dense().numpy() @ draw.standard_normal((columns, 3))).argmax(1)
    return PreparedData("sparse", inputs, labels, ("a", "b", "c"), *torch.arange(rows).split([80, 20, 20]))


def job(data: PreparedData, loss: str = "ce", rate: float = 0.01, decay: float = 0.3, seed: int = 0) -> Job:
    run = Run(loss, "none", seed, rate, decay)
    return Job(run, make_objective(loss), data.labels[data.train], data.labels[data.validation])


def test_sparse_rows_are_the_rows_of_the_matrix():
    rows = sparse_data().inputs
    chosen = torch.tensor([5, 0, 5, 17])
    assert torch.equal(rows[chosen].dense(), rows.dense()[chosen])
    assert torch.equal(torch.cat([part.dense() for part in rows.split(50)]), rows.dense())
    assert np.array_equal(rows.matrix().toarray(), rows.dense().numpy())
    columns, local = rows[chosen].occurring()
    assert torch.equal(local.dense(), rows[chosen].dense()[:, columns])
    assert rows.to(torch.float64).dense().dtype == torch.float64


def test_an_empty_row_stays_empty():
    rows = SparseRows(torch.tensor([0, 0, 1]), torch.tensor([1]), torch.tensor([2.0]), width=3)
    weight = torch.arange(6.0).view(3, 2)
    assert torch.equal(rows.dense(), torch.tensor([[0.0, 0, 0], [0, 2, 0]]))
    assert torch.equal(bag(rows, weight), torch.tensor([[0.0, 0], [4, 6]]))


def test_a_fingerprint_tells_sparse_rows_apart():
    first, second = sparse_data(), sparse_data()
    assert first.fingerprint() == second.fingerprint()
    second.inputs.values[7] *= 1.5
    assert first.fingerprint() != second.fingerprint()


def test_mixed_rows_are_those_of_written_out_rows():
    data = sparse_data()
    rows, target = data.inputs[data.train[:5]], data.labels[data.train[:5]].expand(2, -1)
    mixed = Mixup(1.0, [3, 3], 3)(Batch(rows, target))
    dense = Mixup(1.0, [3, 3], 3)(Batch(rows.dense().expand(2, -1, -1), target))
    torch.testing.assert_close(mixed.inputs.dense(), dense.inputs[1])
    torch.testing.assert_close(mixed.target, dense.target)


def test_lazy_adamw_makes_the_steps_of_adamw():
    draw = torch.Generator().manual_seed(0)
    rates, decays = torch.tensor([[0.02], [0.003]]), torch.tensor([0.5, 0.0])
    tables = torch.randn(2, 12, 4, generator=draw, dtype=torch.double)
    plain = [nn.Parameter(table.clone()) for table in tables]
    optimizers = [
        torch.optim.AdamW([own], rate.item(), weight_decay=decay.item())
        for own, rate, decay in zip(plain, rates, decays, strict=True)
    ]
    lazy = LazyAdamW(tables, decays)
    for step in range(40):
        columns = torch.randperm(12, generator=draw)[:3].sort().values
        gradient = torch.randn(2, 3, 4, generator=draw, dtype=torch.double)
        torch.testing.assert_close(lazy.read(columns), torch.stack([own[columns] for own in plain]), rtol=1e-6, atol=1e-7)
        lazy.step(gradient, rates)
        for own, part, optimizer in zip(plain, gradient, optimizers, strict=True):
            own.grad = torch.zeros_like(own).index_copy_(0, columns, part)
            optimizer.step()
        if step % 15 == 14:
            lazy.catch_up()
    lazy.catch_up()
    torch.testing.assert_close(tables, torch.stack(list(plain)), rtol=1e-6, atol=1e-7)


PLAIN = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 0.01, weight_decay=0.3),
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.01, 0.9, weight_decay=0.3, nesterov=True),
}


@pytest.mark.parametrize("optimizer", PLAIN)
def test_training_on_sparse_rows_is_a_plain_loop(optimizer, monkeypatch):
    monkeypatch.setattr(DropoutMasks, "drop", lambda self, inputs, share: inputs)
    data = sparse_data()
    recipe = Recipe(model="bag", optimizer=optimizer, epochs=2, batch_size=80, schedule="constant", keep=("weights",))
    model = build_model(job(data), data, recipe).model.eval()
    stepped = PLAIN[optimizer](model.parameters())
    for _ in range(recipe.epochs):  # of one batch, whose order does not matter
        stepped.zero_grad()
        F.cross_entropy(model(data.inputs[data.train].dense()), data.labels[data.train]).backward()
        stepped.step()
    (trained,) = train_stack([job(data)], data, recipe)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, trained.weights[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "recipe", [RECIPE, Recipe(model="mlp", epochs=2, batch_size=16), Recipe(model="bag", epochs=2, averaging=0.9)]
)
def test_a_run_among_others_is_the_run_alone(recipe):
    data = sparse_data()
    jobs = [job(data, rate=0.003), job(data, "gce", decay=0.0), job(data, rate=0.03)]
    for alone, among in zip(jobs, train_stack(jobs, data, recipe), strict=True):
        (found,) = train_stack([alone], data, recipe)
        np.testing.assert_allclose(found.test_logits, among.test_logits, rtol=1e-4, atol=1e-5)


def test_runs_of_different_seeds_do_not_share_a_stack_of_sparse_rows():
    data = sparse_data()
    jobs = [job(data, seed=seed, rate=rate) for seed in (0, 1) for rate in (0.01, 0.02)]
    assert compose_stacks(jobs, data, RECIPE) == [[0, 1], [2, 3]]
    for alone, among in zip(jobs, train_stack(jobs, data, RECIPE), strict=True):
        (found,) = train_stack([alone], data, RECIPE)
        np.testing.assert_allclose(found.test_logits, among.test_logits, rtol=1e-4, atol=1e-5)


def test_what_goes_on_after_a_race_gives_what_it_gives_without_one():
    data = sparse_data()
    jobs = [job(data, rate=rate) for rate in (1e-5, 0.003, 0.01, 0.1)]
    race = Race(1, 1, lambda probabilities, labels: Merit(float((probabilities.argmax(1) == labels).mean())))
    for free, raced in zip(train_stack(jobs, data, RECIPE), train_stack(jobs, data, RECIPE, race=race), strict=True):
        if not raced.stopped:
            np.testing.assert_allclose(free.test_logits, raced.test_logits, rtol=1e-4, atol=1e-5)


def test_a_users_model_gets_rows_written_out_unless_it_has_a_layer_for_sparse_ones():
    data, seen = sparse_data(), []

    class Own(nn.Module):
        def __init__(self, layer: nn.Module) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, rows):
            seen.append(type(rows))
            return self.layer(rows)

    recipe = Recipe(optimizer="adamw", epochs=1, batch_size=16)
    for layer, kind in ((nn.Linear(60, 3), torch.Tensor), (SparseLinear(60, 3), SparseRows)):
        seen.clear()
        (found,) = train_stack([job(data)], data, recipe, build=lambda *_, layer=layer: Own(layer))
        assert set(seen) == {kind}
        assert found.test_logits.shape == (20, 3)
    assert isinstance(fitting_inputs(nn.Linear(60, 3), data.inputs), torch.Tensor)


def test_a_sparse_layer_does_as_a_linear_one():
    data, layer = sparse_data(), SparseLinear(60, 5)
    own = {"weight": layer.weight.T, "bias": layer.bias}
    expected = functional_call(nn.Linear(60, 5), own, data.inputs.dense())
    torch.testing.assert_close(layer(data.inputs), expected)
