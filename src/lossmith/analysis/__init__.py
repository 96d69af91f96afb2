"""What a loss does to predictions, calibration and representations: measurements on logits, features and predictions."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.analysis.angles import *
    from lossmith.analysis.calibration import *
    from lossmith.analysis.cka import *
    from lossmith.analysis.class_means import *
    from lossmith.analysis.corruptions import *
    from lossmith.analysis.feature_transfer import *
    from lossmith.analysis.labels.confident_learning import *
    from lossmith.analysis.labels.noisy_tests import *
    from lossmith.analysis.labels.suspects import *
    from lossmith.analysis.layers import *
    from lossmith.analysis.prediction_agreement import *
    from lossmith.analysis.robustness import *
    from lossmith.analysis.run_tables import *
    from lossmith.analysis.scores import *
    from lossmith.analysis.separation import *
    from lossmith.analysis.spectra import *
    from lossmith.analysis.temperature import *

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "angles": ["CosineDistances", "angular_visual_hardness", "cosine_distances"],
        "calibration": [
            "CalibrationBins",
            "ReliabilityDiagram",
            "adaptive_calibration_error",
            "classwise_calibration_error",
            "expected_calibration_error",
            "reliability_diagram",
        ],
        "cka": ["LayerSimilarity", "MinibatchCKA", "layer_similarity", "linear_cka", "unbiased_gram"],
        "class_means": ["ClassMeans", "class_centroids"],
        "corruptions": ["CORRUPTIONS", "SEVERITIES", "Corruption", "corruptions_for"],
        "feature_transfer": ["STRENGTHS", "Transfer", "transfer", "transfer_to_classes"],
        "labels.confident_learning": ["confident_joint", "confident_suspects"],
        "labels.noisy_tests": ["NoisyTest", "noisy_test"],
        "labels.suspects": ["NoiseEstimate", "estimate_noise", "suspects"],
        "layers": ["LayerReader", "input_batches", "leaf_layers", "nonzero_activations"],
        "prediction_agreement": [
            "Agreement",
            "Dendrogram",
            "Ensembles",
            "agreement",
            "cluster",
            "ensemble_accuracy",
            "ensembles",
            "majority_vote",
            "pair_averages",
        ],
        "robustness": ["CorruptionErrors", "corruption_errors", "mean_corruption_error"],
        "run_tables": [
            "AgreementTables",
            "RunOutputs",
            "agreement_tables",
            "by_loss",
            "calibration_table",
            "cross_fitted_calibration",
            "ensemble_table",
            "finite_runs",
            "separation_table",
            "separations",
        ],
        "scores": [
            "accuracy",
            "balanced_accuracy",
            "brier_score",
            "logit_negative_log_likelihood",
            "macro_f1",
            "negative_log_likelihood",
            "predicted_classes",
            "top_k_accuracy",
        ],
        "separation": ["DISTANCES", "ClassSeparation", "SeparationSums", "class_separation"],
        "spectra": ["Spectrum", "singular_spectrum"],
        "temperature": [
            "TemperatureScaling",
            "best_temperature",
            "cross_fitted_scaling",
            "log_probabilities",
            "scaled_probabilities",
            "temperature_scaling",
            "tempered_likelihood",
        ],
    },
)
