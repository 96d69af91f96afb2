"""What a study is to do: its settings, how they are written, and the trials that follow from them."""
