"""What a study costs, and how it fits into the time there is."""
