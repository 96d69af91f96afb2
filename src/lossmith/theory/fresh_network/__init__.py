"""What a network does to a loss before its first step: average error, overlap, and parameters that keep them."""
