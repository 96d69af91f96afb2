"""Is the difference real: paired tests, rankings and the recommendation that follows from them."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.statistics.paired_tests import *
    from lossmith.statistics.ranking import *
    from lossmith.statistics.recommendation import *
    from lossmith.statistics.several_studies import *
    from lossmith.statistics.summary import *

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "paired_tests": ["Difference", "benjamini_hochberg", "holm", "paired_difference", "seeds_needed"],
        "ranking": ["Friedman", "Ranking", "conover", "friedman", "groups_not_told_apart", "performance_profile", "rank_losses"],
        "recommendation": ["Choice", "Recommendation", "recommend"],
        "several_studies": ["RankedStudy", "joined_results", "ranking_text"],
        "summary": [
            "ALL_NOISE",
            "LOWER_IS_BETTER",
            "best_loss",
            "block_means",
            "compare_to",
            "is_higher_better",
            "overall_results",
            "rank",
            "summarise",
            "usable_results",
        ],
    },
)
