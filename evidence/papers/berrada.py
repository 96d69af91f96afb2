"""Berrada, Zisserman and Kumar, "Smooth loss functions for deep top-k classification": noise within groups, and few rows."""

from evidence.papers.composed_images import composed, groups_of_five
from evidence.papers.paper_table import PaperTable, Piece, StudyTable

__all__ = ["TABLES"]

PAPER = "Berrada, Zisserman and Kumar 2018"
TAUS = (1.0, 0.1, 0.04, 0.01)
"""Of the paper's two tables, ``sensible_tau(5, 100)``, and the smallest with which the paper's network still trained."""
LOSSES = ["ce", *(f"smooth-topk(k=5, tau={tau:g})" for tau in TAUS)]
NOISE = ["0", *(f"uniform-within-groups({share})" for share in (0.2, 0.4, 0.6, 0.8, 1.0))]
ROWS = 20_000
SHARES = (5, 10, 25, 50, 100)
RATES = (0.1, 0.6)
"""Of cross-entropy in the paper, and a larger one: the paper has ten times as much for tau = 0.1."""
MEASURES = ("accuracy", "top5")
COMMON = {
    "losses": LOSSES,
    "seeds": 3,
    "metric": "top5",
    "model": "small-cnn",
    "optimizer": "sgd",
    "schedule": "steps(150, 225, epochs=300)",
    "decays": [1e-4],
    "validation_share": 0.1,
    "references": False,
    "groups": groups_of_five(100),
    "precision": "bfloat16",
}
IMAGES = composed("fashion-mnist", 2, ROWS)


def _noisy(rate: float) -> Piece:
    return Piece(f"rate-{rate:g}", {**COMMON, "noise": NOISE, "epochs": 14, "rates": [rate]}, IMAGES)


def _few(share: int, rate: float) -> Piece:
    """Return a study of a share of the rows; fewer rows are seen more often."""
    rows = ROWS * 9 // 10 * share // 100
    settings = {**COMMON, "noise": ["0"], "train_rows": rows, "epochs": min(60, 12 * 100 // share), "rates": [rate]}
    return Piece(f"{share}-rate-{rate:g}", settings, IMAGES, {"share": share})


WITHIN_GROUPS = StudyTable(
    name="berrada-noise",
    paper=f"{PAPER}, table 1",
    about="a hundred classes of two garments, 0 to 100 % random labels within groups of five, CE against smooth top-5",
    minutes=60,
    reduced="other data: the paper has CIFAR-100; 18,000 images, a small network, 14 epochs of 300",
    pieces=tuple(_noisy(rate) for rate in RATES),
    measures=MEASURES,
)
FEW_ROWS = StudyTable(
    name="berrada-rows",
    paper=f"{PAPER}, table 2",
    about="the same classes with clean labels, 5 to 100 % of the rows",
    minutes=50,
    reduced="other data: the paper has ImageNet, tau = 0.1; a small network",
    pieces=tuple(_few(share, rate) for share in SHARES for rate in RATES),
    measures=MEASURES,
)

TABLES: tuple[PaperTable, ...] = (WITHIN_GROUPS, FEW_ROWS)
