"""Images that are changed at random while they are trained on."""
