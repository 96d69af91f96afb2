"""How one replicate is made: its data, its trials, and which of them counts."""
