"""What people rely on when they find their way through the source: layers, maps of it, and docstrings."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import lossmith

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lossmith"
NAMESPACES = (
    *("analysis", "data", "distributed", "losses", "numerics", "objectives", "plots", "report", "statistics", "studies"),
    *("linear", "theory", "training"),
)


def layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {name.strip().removeprefix("lossmith.") for line in lines for name in line.split("|")}


def test_every_folder_has_its_layer():
    """The layer check says nothing about a folder that it has not been told of."""
    parts = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__", "__main__"} == layers()


def test_contributing_draws_every_layer():
    drawn = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[1]
    assert not {name for name in layers() - {"lazy_names"} if not re.search(rf"\b{name}\b", drawn)}


def test_files_that_contributing_names_are_there():
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    places = (SOURCE, SOURCE / "losses", SOURCE / "kernels" / "cpu", ROOT)
    assert not [name for name in named if not any((place / name).exists() for place in places)]


def test_this_version_is_in_the_change_log():
    """With its date, below the section that collects what comes next."""
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert titles[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(lossmith.__version__)} \(\d{{4}}-\d\d-\d\d\)", titles[1])


def functions():
    for namespace in NAMESPACES:
        module = getattr(lossmith, namespace)
        yield from ((f"{namespace}.{name}", getattr(module, name)) for name in module.__all__)


@pytest.mark.parametrize(("name", "function"), [(name, each) for name, each in functions() if inspect.isfunction(each)])
def test_functions_say_what_they_take_and_return(name, function):
    signature, words = inspect.signature(function), inspect.getdoc(function)
    about = words.partition("Args:")[2]
    assert not [each for each in signature.parameters if not re.search(rf"^ *\**{each}: ", about, re.MULTILINE)]
    assert signature.return_annotation in (None, "None") or re.search(r"^(Returns|Yields):", words, re.MULTILINE)
    body = inspect.getsource(function).rpartition('"""')[2]
    assert "raise " not in body or "Raises:" in words
