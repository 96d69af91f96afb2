"""Amid, Warmuth, Anil and Koren, "Robust bi-tempered logistic loss": MNIST, and figure 2 over ten seeds."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import torch

from evidence.papers.paper_table import Frames, PaperTable, Piece, StudyTable, Workshop
from lossmith.losses import BiTemperedLoss
from lossmith.plots.tempered import NOISES, share_right, trained_network, with_noise
from lossmith.theory.one_thread import one_thread

__all__ = ["TABLES"]

PAPER = "Amid et al. 2019"
LOSSES = ("ce", "bi-tempered(t1=0.5, t2=4.0)", "bi-tempered(t1=0.5, t2=2.0)", "bi-tempered(t1=0.8, t2=1.2)")
RATES = (1.0, 0.3)
SETTINGS = {
    "recipe": "amid-mnist",
    "losses": list(LOSSES),
    "noise": ["0", "0.2", "0.4"],
    "seeds": 3,
    "epochs": 18,
    "train_rows": 6000,
    "validation_share": 0.02,
    "precision": "bfloat16",
    "select": "last",  # curves have every epoch
    "references": False,
}

MNIST = StudyTable(
    name="amid-mnist",
    paper=f"{PAPER}, table 1",
    about="MNIST, two convolutions, logistic against bi-tempered with three pairs of temperatures, 0, 20 and 40 % wrong labels",
    minutes=70,
    reduced="6,000 of 60,000 images, 18 epochs of 500, bfloat16 below the final layer; all 10,000 test images",
    pieces=tuple(Piece(f"rate-{rate:g}", {**SETTINGS, "rates": [rate]}) for rate in RATES),
    measures=("accuracy", "memorised", "nll", "ece"),
)


@dataclass(frozen=True)
class Boundaries:
    """Figure 2 once more with other points, wrong labels and initial weights: how many points of the plane are right."""

    name: str = "amid-figure-2"
    paper: str = f"{PAPER}, figure 2"
    about: str = "a network of 10 and 5 units in the plane under four kinds of noise, ten seeds"
    minutes: int = 3
    reduced: str = "nothing; the paper shows one seed, and publishes neither its points nor its training"
    seeds: int = 10

    def make(self, workshop: Workshop) -> Iterator[Frames]:
        """Train either loss under each noise, seed by seed."""
        rows = []
        for seed in range(workshop.options.replicates or self.seeds):
            with one_thread():
                rows += list(_one_seed(seed))
            yield {"shares": pd.DataFrame(rows)}


def _one_seed(seed: int) -> Iterator[dict[str, object]]:
    points, clean, margin, chance = with_noise(torch.Generator().manual_seed(seed))
    for noise in NOISES:
        labels = torch.where(chance < noise.flips(margin), 1 - clean, clean)
        for name, temperatures in (("logistic", (1.0, 1.0)), ("bi-tempered", noise.temperatures)):
            loss = BiTemperedLoss(*temperatures)
            right = share_right(trained_network(loss, points, labels, seed), loss)
            t1, t2 = temperatures
            yield {"noise": noise.name, "loss": name, "t1": t1, "t2": t2, "seed": seed, "right": right}


TABLES: tuple[PaperTable, ...] = (MNIST, Boundaries())
