"""What each loss is for, in a few words, by which lists and pages group them."""

from lossmith.losses.catalogue import LOSSES

__all__ = ["PURPOSES", "losses_by_purpose"]

PURPOSES: dict[str, tuple[str, ...]] = {
    "to begin with": ("ce",),
    "for noisy labels": (
        *("gce", "truncated-gce", "agce", "sce", "tamed-ce", "mae", "el", "ce-el", "bi-tempered", "tsallis"),
        *("nce", "nf", "nce-mae", "nf-mae", "nce-agce"),
    ),
    "around others, for wrong labels of a known kind": ("forward-correction", "backward-correction"),
    "around others, for many classes": ("logit-bias", "z-loss"),
    "for rare classes": ("logit-adjusted", "balanced-softmax", "ldam", "focal", "poly"),
    "for several labels at once": ("multi-label", "asl"),
    "for the right class among k guesses": ("smooth-topk", "hard-topk"),
    "for calibration and representations": (
        *("label-smoothing", "logit-penalty", "logit-norm", "sigmoid", "squared-error", "cot", "complement-entropy"),
    ),
    "for comparison": ("mpce",),
}
OTHER = "for other purposes"


def losses_by_purpose() -> dict[str, list[str]]:
    """Return the names of all losses by what they are for; one that is nowhere named is among the last."""
    named = {purpose: [name for name in names if name in LOSSES] for purpose, names in PURPOSES.items()}
    known = {name for names in named.values() for name in names}
    named[OTHER] = [name for name in LOSSES if name not in known]
    return {purpose: names for purpose, names in named.items() if names}
