"""How many labels are wrong, which ones, and what was taken for what, from predictions of rows that were not trained on."""
