"""What a loss does to a freshly initialised network, and the parameters that follow from it without training."""
