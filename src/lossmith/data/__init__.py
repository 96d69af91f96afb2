"""Data sets, splits and label noise (extra ``experiments``)."""

from lossmith.data.class_balance import class_counts, class_weights
from lossmith.data.loading import load_data
from lossmith.data.noise.named import NOISES, LabelNoise, RealisedNoise, make_noise, realised
from lossmith.data.prepared import PreparedData
from lossmith.data.sources.known_sets import KNOWN_SETS

__all__ = [
    "KNOWN_SETS",
    "NOISES",
    "LabelNoise",
    "PreparedData",
    "RealisedNoise",
    "class_counts",
    "class_weights",
    "load_data",
    "make_noise",
    "realised",
]
