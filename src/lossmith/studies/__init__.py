"""Comparisons of losses on data: plan, train, store, compare (extra ``experiments``)."""

from lossmith.studies.compare import compare
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.settings_file import read_settings
from lossmith.studies.findings import Analysis, LayerMaps
from lossmith.studies.labels.inspect_labels import inspect_labels
from lossmith.studies.labels.inspection import LabelInspection
from lossmith.studies.measures import MEASURES
from lossmith.studies.storage.store import StoreError
from lossmith.studies.study import Study, open_study
from lossmith.studies.study_analysis import analyse

__all__ = [
    "MEASURES",
    "Analysis",
    "LabelInspection",
    "LayerMaps",
    "Settings",
    "StoreError",
    "Study",
    "analyse",
    "compare",
    "inspect_labels",
    "open_study",
    "read_settings",
    "settings_from",
]


def __dir__() -> list[str]:
    return __all__
