"""Which labels of data are probably wrong: predictions of rows that were not trained on, and what they say."""
