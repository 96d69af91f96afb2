"""Everything that scikit-learn asks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from lossmith import LossmithClassifier


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([LossmithClassifier()])
def test_what_scikit_learn_checks(estimator, check):
    check(estimator)
