"""The difference of two losses over replicates: its mean, how far that may be from the truth, and by what luck."""
