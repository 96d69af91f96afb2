"""Data for training tests, and the plain loop that the engine is compared with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lossmith import make_objective
from lossmith.data.prepared import PreparedData
from lossmith.objectives import DropoutLinear
from lossmith.objectives.objective import Objective
from lossmith.training.job import Build, Job
from lossmith.training.models.named_models import make_backbone
from lossmith.training.recipe import Recipe, Run
from lossmith.training.seeds import derived_seed, generator, seeded


def digits(train: int = 200, *, images: bool = False) -> PreparedData:
    inputs, labels = load_digits(return_X_y=True)
    rows = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))
    features = torch.tensor(inputs / 16, dtype=torch.get_default_dtype())
    return PreparedData(
        name="digits",
        inputs=features.view(-1, 1, 8, 8) if images else features,
        labels=torch.tensor(labels),
        classes=tuple("0123456789"),
        train=rows[:train],
        validation=rows[train : train + 100],
        test=rows[-150:],
    )


def noisy(labels: Tensor, rate: float, seed: int) -> Tensor:
    own = torch.Generator().manual_seed(seed)
    wrong = torch.rand(labels.shape, generator=own) < rate
    return torch.where(wrong, (labels + torch.randint(1, 10, labels.shape, generator=own)) % 10, labels)


def job(
    data: PreparedData, loss: str | nn.Module, seed: int = 0, rate: float = 0.1, noise: float = 0.3, *, decay: float = 0.0
) -> Job:
    labels = noisy(data.labels, noise, seed)
    objective = make_objective(loss) if isinstance(loss, str) else loss
    run = Run(str(loss), f"symmetric({noise})", seed, rate, decay)
    return Job(run, objective, labels[data.train], labels[data.validation])


@dataclass
class PlainRun:
    """What the plain loop saw, epoch by epoch."""

    train_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)
    false_label_accuracy: list[float] = field(default_factory=list)
    memorised: list[float] = field(default_factory=list)
    test_logits: list[Tensor] = field(default_factory=list)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda groups, lr, momentum, nesterov=True: torch.optim.SGD(groups, lr, momentum, nesterov=nesterov and momentum > 0),
    "adam": lambda groups, lr, **_: torch.optim.Adam(groups, lr),
    "adamw": lambda groups, lr, **_: torch.optim.AdamW(groups, lr),
    "adadelta": lambda groups, lr, **_: torch.optim.Adadelta(groups, lr),
}


def torch_schedule(optimizer: torch.optim.Optimizer, name: str, epochs: int, steps: int) -> Any:
    """Return torch's own schedule, to be stepped after every batch."""
    total = epochs * steps
    if name == "cosine":
        return lr_scheduler.CosineAnnealingLR(optimizer, total)
    if name == "steps":
        starts = [-(-epochs // 2) * steps, -(-3 * epochs // 4) * steps]
        return lr_scheduler.MultiStepLR(optimizer, starts, gamma=0.1)
    if name == "exponential":
        return lr_scheduler.LambdaLR(optimizer, lambda step: 0.95 ** (step // steps))
    return lr_scheduler.ConstantLR(optimizer, 1.0)


def plain_loop(job: Job, data: PreparedData, recipe: Recipe, build: Build | None = None) -> PlainRun:
    """Train one run as anybody would: a module, an optimiser of torch, a loss."""
    seed, objective = job.run.seed, job.objective
    scheduler = None
    with seeded(seed, "weights"):
        if build is not None:
            model = build(data.input_shape, data.num_classes)
            groups: Any = [{"params": list(model.parameters()), "weight_decay": job.run.weight_decay}]
            loss: Any = objective.loss if isinstance(objective, Objective) else objective
        else:
            assert isinstance(objective, Objective)
            backbone = make_backbone(recipe.model, data.input_shape, scales=data.column_scales)
            model, loss, groups = objective.build(
                backbone, data.num_classes, weight_decay=job.run.weight_decay or None, decay_vectors=recipe.decay_vectors
            )
            scheduler = objective.scheduler(loss, total=recipe.epochs)
    optimizer = OPTIMIZERS[recipe.optimizer](groups, lr=job.run.learning_rate, momentum=recipe.momentum, nesterov=recipe.nesterov)
    steps = -(-len(data.train) // recipe.batch_size)
    schedule = torch_schedule(optimizer, recipe.schedule, recipe.epochs, steps)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(recipe.averaging), use_buffers=True)
    order, masks, mixing = (
        generator(seed, "batches"),
        generator(seed, "dropout"),
        np.random.default_rng(derived_seed(seed, "mixup")),
    )
    _let_dropout_draw(model, masks)
    plain = PlainRun()
    for epoch in range(1, recipe.epochs + 1):
        total = 0.0
        model.train()
        with seeded(seed, f"epoch {epoch}"):
            for rows in torch.randperm(len(data.train), generator=order).split(recipe.batch_size):
                inputs, target = data.inputs[data.train[rows]], job.train_labels[rows]
                if recipe.mixup:
                    share = float(mixing.beta(recipe.mixup, recipe.mixup))
                    one_hot = F.one_hot(target, data.num_classes).to(inputs.dtype)
                    inputs = share * inputs + (1 - share) * inputs.flip(0)
                    target = share * one_hot + (1 - share) * one_hot.flip(0)
                for part in objective.passes(loss) if isinstance(objective, Objective) else (loss,):
                    optimizer.zero_grad()
                    value = part(_training_logits(model, inputs, masks), target)
                    value.backward()
                    optimizer.step()
                    total += value.item() * len(rows)
                schedule.step()
                average.update_parameters(model)
        if scheduler is not None:
            scheduler.step()
        _evaluate(plain, average.module if recipe.averaging else model, job, data)
        plain.train_loss.append(total / len(data.train))
    return plain


def _training_logits(model: nn.Module, inputs: Tensor, masks: torch.Generator) -> Tensor:
    head = getattr(model, "head", None)
    if not isinstance(head, DropoutLinear):
        return model(inputs)
    features = model.backbone(inputs)
    kept = torch.empty_like(features).bernoulli_(head.keep, generator=masks)
    return F.linear(features * kept / head.keep, head.weight, head.bias)


def _let_dropout_draw(model: nn.Module, masks: torch.Generator) -> None:
    """Let dropout layers draw by the generator of the run, eight entries a number."""

    def drop(layer: nn.Dropout, given: tuple[Tensor], _: Tensor) -> Tensor | None:
        (inputs,) = given
        if not layer.training:
            return None
        drawn = torch.empty(-(-inputs.numel() // 8), dtype=torch.int64).random_(-(2**63), None, generator=masks)
        kept = torch.tensor(drawn.numpy().view(np.uint8)[: inputs.numel()].reshape(inputs.shape) >= round(256 * layer.p))
        return inputs * kept / (1 - round(256 * layer.p) / 256)

    for module in model.modules():
        if type(module) is nn.Dropout:
            module.register_forward_hook(drop)


@torch.no_grad()
def _evaluate(plain: PlainRun, model: nn.Module, job: Job, data: PreparedData) -> None:
    model.eval()
    train, validation, test = (model(data.inputs[rows]) for rows in (data.train, data.validation, data.test))
    truth = data.labels[data.train]
    wrong = job.train_labels != truth
    hits = train.argmax(1)
    plain.train_accuracy.append((hits == job.train_labels).double().mean().item())
    plain.validation_accuracy.append((validation.argmax(1) == job.validation_labels).double().mean().item())
    plain.test_accuracy.append((test.argmax(1) == data.labels[data.test]).double().mean().item())
    plain.false_label_accuracy.append((hits == truth)[wrong].double().mean().item())
    plain.memorised.append((hits == job.train_labels)[wrong].double().mean().item())
    plain.test_logits.append(test)


def double_precision() -> Iterator[None]:
    """Rounding then cannot hide that a run is not the same run."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)
