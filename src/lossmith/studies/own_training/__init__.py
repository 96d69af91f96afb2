"""Studies of what a function of the user's own trains."""
