"""The colours of losses: one for each on the whole page, told apart by people who are blind to some colours, too."""

__all__ = ["DARK", "LIGHT", "colour_rules"]

LIGHT = ("#1c1e21", "#0899ce", "#d27c06", "#194a07", "#ff3f90", "#192ec5", "#7d6310", "#66036f", "#7352f5", "#ad2f7f")
"""On light ground, the baseline first, in ink. They were sought such that any two lie as far apart as possible, as usual eyes see
them and as eyes without one kind of cone do, and that each stands out from the ground by 3 to 1."""

DARK = ("#e8e6e1", "#4fceff", "#c2390b", "#20b62f", "#ff9ba5", "#9e8aff", "#b9d623", "#ab33b5", "#425bfd", "#fb43a2")
"""The same on dark ground."""


def colour_rules() -> str:
    """Return style rules that name the colours for either scheme, and on paper, and give each class ``hueN`` its own."""
    light, dark = (" ".join(f"--hue{number}: {colour};" for number, colour in enumerate(colours)) for colours in (LIGHT, DARK))
    classes = " ".join(f".hue{number} {{ --hue: var(--hue{number}); }}" for number in range(len(LIGHT)))
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{classes}"
