"""Is the difference real: paired tests, rankings and the recommendation that follows from them."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.statistics.budgets import *
    from lossmith.statistics.differences.luck import *
    from lossmith.statistics.differences.mean_error import *
    from lossmith.statistics.differences.overlapping import *
    from lossmith.statistics.differences.paired_tests import *
    from lossmith.statistics.differences.pooled_spread import *
    from lossmith.statistics.ranking import *
    from lossmith.statistics.recommendation import *
    from lossmith.statistics.setting_dependence import *
    from lossmith.statistics.several_studies import *
    from lossmith.statistics.summary import *
    from lossmith.statistics.untrained import *

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "budgets": ["BUDGETS", "expected_best", "expected_results", "plateaus", "tuning_curves", "tuning_differences"],
        "differences.luck": ["NO_LUCK", "LuckByScores", "LuckOfRows", "RowLuck", "RowScores", "row_luck"],
        "differences.mean_error": ["MeanError"],
        "differences.overlapping": ["INDEPENDENT", "Overlap", "row_scores"],
        "differences.paired_tests": [
            "Difference",
            "benjamini_hochberg",
            "by_holm",
            "holm",
            "paired_difference",
            "replicates_needed",
        ],
        "differences.pooled_spread": ["Spread", "pooled_spreads"],
        "ranking": ["Friedman", "Ranking", "conover", "friedman", "groups_not_told_apart", "performance_profile", "rank_losses"],
        "recommendation": ["Choice", "Recommendation", "recommend"],
        "setting_dependence": ["KEPT", "RULES", "Rule", "setting_checks", "what_it_hangs_on"],
        "several_studies": ["RankedStudy", "at_noise", "joined_results", "rank", "ranking_text"],
        "summary": [
            "LOWER_IS_BETTER",
            "best_loss",
            "block_means",
            "compare_to",
            "is_higher_better",
            "noise_as_is",
            "summarise",
            "usable_results",
        ],
        "untrained": ["untrained_losses", "untrained_reason"],
    },
)
