"""The analysis of a finished study: what its losses do to calibration, predictions, features and robustness."""

from lossmith.studies.findings import Analysis, LayerMaps
from lossmith.studies.study_analysis.analysing import analyse

__all__ = ["Analysis", "LayerMaps", "analyse"]
