"""What a loss does to predictions, calibration and representations: measurements on logits, features and predictions."""
