"""From columns, texts, images and labels to tensors, fitted on training rows alone."""
