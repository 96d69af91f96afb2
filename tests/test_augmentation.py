"""Augmentations: each does what it says, draws by the seed of its run, and can be looked at."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.studies.design.given_settings import settings_from
from lossmith.training.augmentation.augmentation import AUGMENTATIONS, Augmentation
from lossmith.training.augmentation.colours import COLOURS
from lossmith.training.augmentation.framing import crop, cutout, flip
from lossmith.training.augmentation.policy import Policy
from lossmith.training.augmentation.warping import WARPS, warped
from lossmith.training.batches import Batch
from lossmith.training.loop import train_stack
from lossmith.training.recipe import Recipe
from training_reference import digits, job

ALL = ",".join(AUGMENTATIONS)


def images(rows: int = 6, channels: int = 3, height: int = 16, width: int = 24) -> Tensor:
    return torch.rand(rows, channels, height, width, generator=torch.Generator().manual_seed(0))


def test_a_crop_is_a_window_of_the_mirrored_image() -> None:
    own = images(2)
    down, right = 2, 3  # of 16 // 8 and 24 // 8 at most
    corners = torch.tensor([[0.999, 0.999], [0.0, 0.0]])
    padded = F.pad(own, (right, right, down, down), mode="reflect")
    found = crop(own, corners)
    assert torch.equal(found[0], padded[0, :, 2 * down :, 2 * right :])
    assert torch.equal(found[1], padded[1, :, :16, :24])
    assert torch.equal(crop(own, torch.full((2, 2), 0.5)), own)


def test_a_flip_turns_left_into_right() -> None:
    own = images(2)
    found = flip(own, torch.tensor([[0.2], [0.7]]))
    assert torch.equal(found[0], own[0].flip(2))
    assert torch.equal(found[1], own[1])


@pytest.mark.parametrize(("middle", "hidden"), [((0.5, 0.5), 8 * 12), ((0.0, 0.0), 4 * 6), ((0.5, 0.0), 8 * 6)])
def test_a_cutout_hides_a_quarter_or_what_of_it_is_in_the_image(middle: tuple[float, float], hidden: int) -> None:
    own = images(1) + 1
    found = cutout(own, torch.tensor([middle]))
    assert int((found == 0).sum()) == 3 * hidden
    assert torch.equal(found[found != 0], own[found != 0])


def test_warps_of_no_strength_change_nothing_and_moves_go_by_pixels() -> None:
    own = images(len(WARPS), height=32, width=32)
    every = torch.arange(len(WARPS))
    torch.testing.assert_close(warped(own, every, torch.zeros(len(WARPS))), own, atol=1e-5, rtol=0)
    moved = warped(own[:1], torch.tensor([WARPS.index("move-x")]), torch.tensor([0.5]))
    torch.testing.assert_close(moved[:, :, :, :-5], own[:1, :, :, 5:], atol=1e-5, rtol=0)
    turned = warped(own[:1], torch.tensor([WARPS.index("turn")]), torch.tensor([1.0]))
    back = warped(turned, torch.tensor([WARPS.index("turn")]), torch.tensor([-1.0]))
    middle = slice(12, 20)
    smooth = F.avg_pool2d(own[:1], 5, 1, 2)
    assert (F.avg_pool2d(back, 5, 1, 2) - smooth)[:, :, middle, middle].abs().mean() < 0.05  # but for blur


@pytest.mark.parametrize("name", COLOURS)
def test_colours_are_those_of_the_imaging_library(name: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    from PIL import ImageEnhance, ImageOps

    levels = (images(1, height=120, width=120)[0] * 255).round()
    picture = pillow.fromarray(levels.permute(1, 2, 0).byte().numpy())
    strength = 0.5
    factor = 1 + 0.9 * strength
    expected = {
        "brightness": lambda: ImageEnhance.Brightness(picture).enhance(factor),
        "contrast": lambda: ImageEnhance.Contrast(picture).enhance(factor),
        "saturation": lambda: ImageEnhance.Color(picture).enhance(factor),
        "sharpness": lambda: ImageEnhance.Sharpness(picture).enhance(factor),
        "full-range": lambda: ImageOps.autocontrast(picture),
        "equalised": lambda: ImageOps.equalize(picture),
        "solarised": lambda: ImageOps.solarize(picture, 128),
        "posterised": lambda: ImageOps.posterize(picture, 6),
    }[name]()
    found = 255 * COLOURS[name](levels[None] / 255, torch.full((1, 1, 1, 1), strength)).clamp(0, 1)[0]
    inner = (slice(None), slice(1, -1), slice(1, -1))  # the library does not sharpen the border
    difference = (found - torch.tensor(np.asarray(expected)).permute(2, 0, 1))[inner]
    assert difference.abs().max() <= 3  # levels of 256: it rounds between its steps, and takes the mean of a grey picture


def test_an_image_of_one_colour_survives_every_change() -> None:
    flat = torch.full((2, 3, 8, 8), 0.25)
    for name, change in COLOURS.items():
        assert change(flat, torch.full((2, 1, 1, 1), 0.9)).isfinite().all(), name


def test_a_policy_draws_all_changes_and_stays_within_the_range() -> None:
    own = 4 * images(1400, height=8, width=8) - 2
    policy = Policy(torch.full((3, 1, 1), -2.0), torch.full((3, 1, 1), 2.0))
    draws = torch.rand(len(own), 2, generator=torch.Generator().manual_seed(1))
    changed = policy(own, draws)
    assert len(policy.changes) == 14
    same = (changed == own).flatten(1).all(1)
    assert torch.equal(same[draws[:, 0] < 1 / 14], torch.ones(int((draws[:, 0] < 1 / 14).sum()), dtype=torch.bool))
    assert same.float().mean() < 0.15
    assert changed.min() >= -2.001
    assert changed.max() <= 2.001
    grey = Policy(torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    assert "saturation" not in grey.changes


def test_a_run_sees_the_same_images_alone_and_among_others() -> None:
    data = digits(images=True)
    rows = data.inputs[data.train[:20]]
    together = Augmentation(ALL, [1, 2], data)(Batch(rows.expand(2, *rows.shape), torch.zeros(2, 20)))
    alone = Augmentation(ALL, [2], data)(Batch(rows.expand(1, *rows.shape), torch.zeros(1, 20)))
    torch.testing.assert_close(together.inputs[1], alone.inputs[0])
    assert not torch.equal(together.inputs[0], together.inputs[1])
    left = Augmentation(ALL, [1, 2], data)
    left.keep(torch.tensor([1]))
    torch.testing.assert_close(left(Batch(rows[None], torch.zeros(1, 20))).inputs, alone.inputs)


@pytest.mark.parametrize("augment", [*AUGMENTATIONS, ALL])
def test_runs_learn_from_changed_images(augment: str) -> None:
    data = digits(images=True)
    jobs = [job(data, "ce", seed, noise=0.0) for seed in range(2)]
    plain = train_stack(jobs, data, Recipe(epochs=6, batch_size=16))
    changed = train_stack(jobs, data, Recipe(epochs=6, batch_size=16, augment=augment))
    (alone,) = train_stack(jobs[1:], data, Recipe(epochs=6, batch_size=16, augment=augment))
    for before, after in zip(plain, changed, strict=True):
        assert not np.allclose(before.test_logits, after.test_logits)
        assert after.curves["test_accuracy"][-1] > 0.2  # of ten classes, small and strongly changed
    np.testing.assert_allclose(changed[1].test_logits, alone.test_logits, atol=1e-3)


def test_settings_take_names_as_text_or_list_and_change_known_photographs_alone() -> None:
    assert settings_from({"augment": ["crop", "flip"]}).recipe.augment == "crop,flip"
    assert settings_from({"augment": "crop, cutout"}).recipe.augment == "crop,cutout"
    assert settings_from({}).completed("mlp", 650).recipe.augment == "none"
    assert settings_from({}).completed("mlp", 650, "crop,flip").recipe.augment == "crop,flip"
    assert settings_from({"augment": "none"}).completed("mlp", 650, "crop,flip").recipe.augment == "none"
    stored = settings_from({"augment": "flip"}).completed("mlp", 650)
    assert settings_from({}).as_before(stored).recipe.augment == "flip"
