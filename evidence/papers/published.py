"""What the papers print, for the tables and pictures of docs/reproductions.md."""

from collections.abc import Mapping

__all__ = [
    "AMID_MNIST",
    "BATTASH",
    "BERRADA_NOISE",
    "BERRADA_ROWS",
    "KORNBLITH",
    "KORNBLITH_TITLES",
    "STAATS_FASHION",
    "STAATS_TITLES",
]

By_noise = Mapping[str, Mapping[float, float]]
"""Accuracy in per cent by loss and share of wrong labels."""

AMID_MNIST: By_noise = {
    "ce": {0.0: 99.40, 0.2: 98.70, 0.4: 97.64},
    "bi-tempered(t1=0.5, t2=4.0)": {0.0: 99.24, 0.2: 99.02, 0.4: 98.56},
}
"""Amid et al., table 1."""

STAATS_FASHION: By_noise = {
    "ce": {0.0: 90.20, 0.2: 79.54, 0.4: 63.04, 0.6: 45.67},
    "mae": {0.0: 84.83, 0.2: 82.00, 0.4: 83.70, 0.6: 80.17},
    "logit-bias(mae, epsilon=0.5)": {0.0: 89.55, 0.2: 89.09, 0.4: 88.03, 0.6: 85.63},
    "gce(q=0.7)": {0.0: 89.76, 0.2: 89.09, 0.4: 87.70, 0.6: 80.86},
    "sce": {0.0: 89.98, 0.2: 84.05, 0.4: 69.95, 0.6: 51.34},
    "nf-mae@10": {0.0: 89.13, 0.2: 88.62, 0.4: 87.86, 0.6: 86.26},
    "nce-mae@10": {0.0: 89.14, 0.2: 88.59, 0.4: 87.79, 0.6: 86.24},
    "bi-tempered(t1=0.8, t2=1.2)": {0.0: 90.19, 0.2: 80.33, 0.4: 64.11, 0.6: 45.77},
}
"""Staats, Thamm and Rosenow, table 3 of the appendix."""
STAATS_TITLES = {
    "ce": "CE",
    "mae": "MAE",
    "logit-bias(mae, epsilon=0.5)": "MAE*",
    "gce(q=0.7)": "genCE",
    "sce": "symCE",
    "nf-mae@10": "NF-MAE",
    "nce-mae@10": "NCE-MAE",
    "bi-tempered(t1=0.8, t2=1.2)": "biTemp",
}

BATTASH: Mapping[str, Mapping[str, tuple[int, float, float]]] = {
    "battash-linear": {
        "ce": (33, 0.0, 2.59),
        "ce-el": (32, 0.09, 2.39),
        "ce-el-late": (31, 0.20, 2.30),
        "ce-el-gradual": (48, 0.30, 2.12),
        "el": (33, -2.71, 3.25),
        "focal": (26, -0.56, 3.13),
    },
    "battash-hidden": {
        "ce": (26, 0.0, 2.70),
        "ce-el": (30, 0.12, 2.62),
        "ce-el-late": (37, 0.27, 2.40),
        "ce-el-gradual": (42, 0.30, 2.37),
        "el": (33, -4.73, 3.52),
        "focal": (25, -0.89, 3.03),
    },
}
"""Battash, Hazan and Wolf, table 4: wins, mean difference to cross-entropy in points, mean rank."""

KORNBLITH: Mapping[str, tuple[float, float]] = {
    "softmax": (93.49, 0.3494),
    "squared-error": (93.31, 0.8452),
    "dropout": (93.74, 0.4606),
    "label-smoothing": (93.79, 0.4197),
    "extra-l2": (93.63, 0.5718),
    "logit-penalty": (93.84, 0.6012),
    "logit-norm": (93.55, 0.5167),
    "cosine-softmax": (93.64, 0.6406),
    "sigmoid": (93.79, 0.4267),
}
"""Kornblith et al., table 1, accuracy of All-CNN-C on CIFAR-10, and table 4, class separation R2 of ResNet-50 on ImageNet."""
KORNBLITH_TITLES = {f"{name}@cifar-10": name for name in KORNBLITH}

BERRADA_NOISE: Mapping[str, By_noise] = {
    "top5": {
        "ce": dict(zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (94.34, 87.89, 83.04, 79.59, 74.80, 67.70), strict=True)),
        "smooth-topk(k=5, tau=1)": dict(
            zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (94.29, 90.59, 87.39, 83.86, 79.32, 72.93), strict=True)
        ),
    },
    "accuracy": {
        "ce": dict(zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (76.68, 68.20, 61.18, 52.50, 35.53, 14.06), strict=True)),
        "smooth-topk(k=5, tau=1)": dict(
            zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (69.33, 71.30, 70.02, 67.97, 55.85, 15.28), strict=True)
        ),
    },
}
"""Berrada, Zisserman and Kumar, table 1, on CIFAR-100."""
BERRADA_ROWS: By_noise = {
    "ce": {5: 58.31, 10: 71.06, 25: 82.62, 50: 87.57, 100: 90.67},
    "smooth-topk(k=5, tau=0.1)": {5: 60.44, 10: 73.10, 25: 83.38, 50: 87.87, 100: 90.61},
}
"""The same, table 2: top-5 accuracy by the share of ImageNet's rows in per cent."""
