"""What the first version said about one of its studies, for :mod:`evidence.old_protocol`, which runs this file with that version.

``python old_claims.py STUDY`` prints JSON: the headline, and every loss against the first at each noise and over all.
"""

import json
import sys

import pandas as pd

from lossmith.statistics.summary import compare_to
from lossmith.studies import open_study

COLUMNS = ["noise", "loss", "difference", "low", "high", "p_holm"]


def main() -> None:
    """Print the claims of the study that is named."""
    study = open_study(sys.argv[1])
    results, baseline = study.results, study.settings.losses[0]
    answer = study.recommend()
    compared = pd.concat([compare_to(results, baseline), compare_to(results, baseline, pooled=True)])  # type: ignore[call-arg]
    print(json.dumps({"loss": answer.loss, "sure": answer.sure, "differences": compared[COLUMNS].to_dict("records")}))


if __name__ == "__main__":
    main()
