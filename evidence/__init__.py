"""Is the answer of a study true? Each module is a command that measures it on small real tables."""
