"""The analysis of a finished study: what its losses do to calibration, predictions, features and robustness."""

from lossmith.experiments.study_analysis.analysing import analyse
from lossmith.experiments.study_analysis.record import Analysis, LayerMaps

__all__ = ["Analysis", "LayerMaps", "analyse"]
