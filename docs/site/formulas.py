"""Formulas of docstrings, which are plain text for terminals, as mathematics for browsers."""

import re

GREEK = ("alpha", "beta", "gamma", "tau", "epsilon", "kappa", "pi")
WORDS = ("margin", "scale", "target", "NCE", "MAE", "NF", "AGCE", "softmax", "sigmoid")


def mathml(formula: str) -> str:
    """Return a formula as MathML, which needs no script and no font.

    >>> mathml("(1 - p**q) / q").startswith("<math")
    True
    """
    from latex2mathml.converter import convert  # only the site needs it

    return str(convert(latex(formula), display="block"))


def latex(formula: str) -> str:
    r"""Return a formula of a docstring in LaTeX.

    >>> latex("((1 - log p)**(1 - alpha) - 1) / (1 - alpha)")
    '\\frac{(1 - \\log p)^{1 - \\alpha} - 1}{1 - \\alpha}'
    >>> latex("-log(n_y exp(z_y) / sum_c n_c exp(z_c))")
    '-\\log(\\frac{n_{y} \\exp(z_{y})}{\\sum_{c} n_{c} \\exp(z_{c})})'
    >>> latex("-log_t1 p_y - (1 - sum_c p_c**(2-t1)) / (2-t1)")
    '-\\log_{t_{1}} p_{y} - \\frac{1 - \\sum_{c} p_{c}^{2-t_{1}}}{2-t_{1}}'
    """
    text = re.sub(r"sum over (\w) != (\w) of", r"\\sum_{\1 \\ne \2}", formula)
    text = re.sub(r"\|\|(\w)\|\|", r"\\lVert \1 \\rVert", text)
    text = _powers(text)
    text = _fractions(text)
    text = re.sub(r"\bs_\[k\]", r"s_{[k]}", text)
    text = re.sub(r"(?<![\\\w])(log|exp|max)_(\w+)", lambda found: rf"\{found[1]}_{{{_index(found[2])}}}", text)
    text = re.sub(r"(?<![\\\w])sum_(\w)", r"\\sum_{\1}", text)
    text = re.sub(r"\bloss_(\w)", r"\\mathrm{loss}_{\1}", text)
    text = re.sub(r"\)_(\w+)", r")_{\1}", text)
    text = re.sub(r"(?<![\\\w])(log|exp|max)(?![\w])", r"\\\1", text)
    text = re.sub(r"\b([A-Za-z])_(\w{1,2})\b", r"\1_{\2}", text)
    text = re.sub(
        r"(?<![\\\w{])([t])(\d)\b|(?<=\{)([t])(\d)\b", lambda found: f"{found[1] or found[3]}_{{{found[2] or found[4]}}}", text
    )
    text = re.sub(rf"(?<![\\\w])({'|'.join(GREEK)})\b", r"\\\1", text)
    text = re.sub(rf"(?<![\\\w])({'|'.join(WORDS)})\b", r"\\mathrm{\1}", text)
    return text.replace("*", r"\cdot ").replace("\\log \\mathrm", "\\log\\,\\mathrm")


def _index(name: str) -> str:
    return r"\text{zero}" if name == "zero" else name


def _powers(text: str) -> str:
    """Write ``a**(b)`` and ``a**b`` as powers."""
    while (place := text.find("**")) >= 0:
        rest = text[place + 2 :]
        end = _closing(rest, 0) + 1 if rest.startswith("(") else len(re.match(r"-?\w+", rest)[0])  # type: ignore[index]
        text = (
            f"{text[:place]}^{{{rest[:end].removeprefix('(').removesuffix(')') if rest[0] == '(' else rest[:end]}}}{rest[end:]}"
        )
    return text


def _fractions(text: str) -> str:
    """Write ``(a) / (b)``, ``(a) / b`` and ``a / b`` of single words as fractions, from the inside."""
    while found := re.search(r" / ", text):
        left, right = _left(text, found.start()), _right(text, found.end())
        above, below = text[left : found.start()], text[found.end() : right]
        text = f"{text[:left]}\\frac{{{_bare(above)}}}{{{_bare(below)}}}{text[right:]}"
    return text


def _left(text: str, end: int) -> int:
    """Return where the term before a place begins: a bracket, or a product back to a sign or an opening bracket."""
    if text[end - 1] == ")":
        opening = _opening(text, end - 1)
        if not re.search(r"\w$", text[:opening]):  # no function that it is the argument of
            return opening
    depth, place = 0, end
    while place > 0:
        sign = text[place - 1]
        depth += (sign in ")}") - (sign in "({")
        if depth < 0 or (depth == 0 and text[place - 2 : place] in ("- ", "+ ")):
            break
        place -= 1
    return place


def _right(text: str, start: int) -> int:
    """Return where the term after a place ends: a bracket, a word, or a sum to the end."""
    if text[start] == "(":
        return _closing(text, start) + 1
    if text.startswith(("sum", "\\sum"), start):
        return _end_of_bracket(text, start)
    return start + len(re.match(r"\\?\w+", text[start:])[0])  # type: ignore[index]


def _opening(text: str, end: int) -> int:
    depth = 0
    for place in range(end, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth == 0:
            return place
    raise ValueError(f"formula {text!r} must open its brackets.")


def _end_of_bracket(text: str, start: int) -> int:
    """Return where the bracket ends that a place is in, or the text."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth < 0:
            return place
    return len(text)


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise ValueError(f"formula {text!r} must close its brackets.")


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and _closing(text, 0) == len(text) - 1 else text
