"""Losses where people work: a module for each client, which is imported only when that is used."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.integrations.scikit_learn import *

__all__, __getattr__, __dir__ = lazy_names(__name__, {"scikit_learn": ["LossmithClassifier"]})
