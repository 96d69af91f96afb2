"""Staats, Thamm and Rosenow, "Noise-robust loss functions": Fashion-MNIST, a hundred and a thousand classes, CIFAR-10N."""

from collections.abc import Sequence

import pandas as pd

from evidence.papers.composed_images import composed
from evidence.papers.conventions import accuracies
from evidence.papers.correlation import rank_correlation
from evidence.papers.paper_table import Frames, PaperTable, Piece, StudyTable
from lossmith.recipes.named_recipes import RECIPES
from lossmith.studies import Study
from lossmith.theory import fitted_to_classes, overlap

__all__ = ["TABLES"]

PAPER = "Staats, Thamm and Rosenow"
SCE_RATE = 0.005
"""That of symmetric cross-entropy is not published; this is the one of cross-entropy."""
RATES = {**{loss.expression: loss.rate or 0.0 for loss in RECIPES["staats-fashion"].losses}, "sce": SCE_RATE}
FASHION_NOISE = ["0", "uniform(0.2)", "uniform(0.4)", "uniform(0.6)"]


def _fashion(share: float) -> Piece:
    """Return a study with published learning rates, or a share of them."""
    settings = {
        "recipe": "staats-fashion",
        "losses": list(RATES),
        "loss_rates": {loss: [float(f"{share * rate:.3g}")] for loss, rate in RATES.items()},
        "noise": FASHION_NOISE,
        "seeds": 3,
        "epochs": 22,
        "train_rows": 8000,
        "validation_share": 0.03,
        "precision": "bfloat16",
    }
    return Piece(f"rate-{share:g}", settings)


FASHION = StudyTable(
    name="staats-fashion",
    paper=f"{PAPER}, appendix table 3",
    about="Fashion-MNIST, MLP1024, eight losses, 0 to 60 % random labels, published rates and a third of them",
    minutes=75,
    reduced="8,000 of 60,000 images, 22 epochs of about 100, three replicates of five; all 10,000 test images",
    pieces=(_fashion(1.0), _fashion(0.3)),
    measures=("accuracy", "memorised", "false_label_accuracy"),
)

MANY_RATES = (0.01, 0.05, 0.25, 1.25)
BOUNDED = ("agce", "nce-agce", "nf-mae", "nce-mae")


def _many(places: int, rows: int, rate: float) -> Piece:
    """Return a study of a hundred or a thousand classes with one rate for all losses."""
    classes = 10**places
    published = [f"{name}@{classes}" for name in BOUNDED]
    losses = ["ce", "mae", "logit-bias(mae)", "gce(q=0.7)", "gce(q=0.48)", "logit-bias(gce(q=0.7))", *published, "bi-tempered"]
    settings = {
        "losses": losses,
        "noise": ["0", "uniform(0.2)"],
        "seeds": 3,
        "model": "mlp",
        "epochs": 25,
        "rates": [rate],
        "decays": [0.0],
        "references": False,
        "validation_share": 0.1,
    }
    return Piece(f"{classes}-rate-{rate:g}", settings, composed("mnist", places, rows), {"classes": classes})


def _overlaps(made: Sequence[tuple[Piece, Study]]) -> Frames:
    """Return overlap beside tuned accuracy, and the rank correlation of the two with its interval."""
    found = accuracies(made).query("epoch == 'last' and choice == 'noisy'")
    means = found.groupby(["classes", "noise", "loss"], sort=False)["accuracy"].mean().reset_index()
    means["overlap"] = [overlap(fitted_to_classes(row.loss, row.classes), row.classes) for row in means.itertuples()]
    lines = [
        {"classes": classes, "noise": noise, **rank_correlation(part["overlap"], part["accuracy"])}
        for (classes, noise), part in means.groupby(["classes", "noise"], sort=False)
    ]
    return {"overlap": means, "correlation": pd.DataFrame(lines)}


MANY = StudyTable(
    name="staats-many-classes",
    paper=f"{PAPER}, table 3 and section 3",
    about="100 and 1000 classes of two and three digits of MNIST: overlap and logit bias against accuracy after tuning",
    minutes=70,
    reduced="other data: the paper has CIFAR-100 and WebVision; a network of two hidden layers, 25 epochs",
    pieces=tuple(_many(places, rows, rate) for places, rows in ((2, 20_000), (3, 30_000)) for rate in MANY_RATES),
    further=_overlaps,
)

HUMAN_LOSSES = [
    "ce",
    "mae",
    "logit-bias(mae, epsilon=0.5)",
    "agce@10",
    "gce(q=0.7)",
    "nf-mae@10",
    "nce-mae@10",
    "bi-tempered",
    "sce",
]
LABELS = {"true labels": "cifar-10", "aggregate": "cifar-10n:aggregate", "worst": "cifar-10n:worst"}
HUMAN_RATES = (0.1, 0.01)


def _human(labels: str, rate: float) -> Piece:
    settings = {
        "losses": HUMAN_LOSSES,
        "noise": ["0"],
        "seeds": 3,
        "model": "small-cnn",
        "epochs": 10,
        "train_rows": 20_000,
        "validation_share": 0.05,
        "rates": [rate],
        "decays": [1e-4],
        "references": False,
        "precision": "bfloat16",
    }
    name = "none" if labels == "true labels" else labels
    return Piece(f"{labels.partition(' ')[0]}-rate-{rate:g}", settings, LABELS[labels], called={"none": name})


HUMAN = StudyTable(
    name="staats-cifar-10n",
    paper=f"{PAPER}, table 2, with the labels of Wei et al. 2022",
    about="CIFAR-10 as people labelled it, aggregate and worst, nine losses: does the order under random labels survive?",
    minutes=75,
    reduced="20,000 of 50,000 images, 10 epochs of 200, a small network in the place of ResNet-32; all 10,000 test images",
    pieces=tuple(_human(labels, rate) for labels in LABELS for rate in HUMAN_RATES),
    measures=("accuracy", "memorised", "false_label_accuracy"),
)

TABLES: tuple[PaperTable, ...] = (FASHION, MANY, HUMAN)
