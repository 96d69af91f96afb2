"""Pages that are made from the package before the site is built: one for each loss, and one for each namespace."""

import inspect
from pathlib import Path
from typing import Any

from loss_pages import loss_index, loss_page
from pictures import draw

import lossmith
from lossmith.losses import LOSSES
from lossmith.losses.catalogue.purposes import losses_by_purpose
from lossmith.losses.catalogue.ready import ready_expression


def setup(app: Any) -> dict[str, Any]:
    """Make the pages when Sphinx starts."""
    app.connect("builder-inited", _make)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}


def _skip(*asked: Any) -> bool | None:
    """Leave out what scikit-learn adds to an estimator; None leaves the others to Sphinx."""
    member = asked[3]  # after the application, the kind of thing and its name
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def _make(app: Any) -> None:
    source = Path(app.srcdir)
    _make_losses(source / "losses")
    _make_reference(source / "reference")


def _make_losses(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, loss in LOSSES.items():
        pictures = draw(name, lossmith.make_loss(ready_expression(name)), folder / "pictures")
        _write(folder / f"{name}.md", loss_page(name, loss, pictures))
    _write(folder / "index.md", loss_index(losses_by_purpose()))


def _make_reference(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in lossmith._NAMESPACES:
        _write(folder / f"{name}.md", _namespace_page(name))
    listed = "\n".join(f"| [`lossmith.{name}`]({name}.md) | {_about(name)} |" for name in lossmith._NAMESPACES)
    tree = "\n".join(lossmith._NAMESPACES)
    _write(folder / "index.md", _INDEX.format(listed=listed, tree=tree, top=_top_level()))


def _top_level() -> str:
    homes = {name: home.removeprefix("lossmith.").partition(".")[0] for name, home in sorted(lossmith._HOMES.items())}
    return "\n".join(f"| `lossmith.{name}` | [`lossmith.{home}`]({home}.md) |" for name, home in homes.items())


def _about(name: str) -> str:
    """Return the first sentence of a namespace."""
    return (inspect.getdoc(getattr(lossmith, name)) or "").partition("\n")[0].replace("``", "`")


def _namespace_page(name: str) -> str:
    return f"# lossmith.{name}\n\n```{{eval-rst}}\n.. automodule:: lossmith.{name}\n   :members:\n```\n"


def _write(file: Path, text: str) -> None:
    """Write a page, unless it is there already: what has not changed is not read again."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


_INDEX = """# Reference

Every public name, from its docstring. Losses have [pages of their own](../losses/index.md).

| namespace | holds |
|---|---|
{listed}

What people type most is at the top level, too:

| name | home |
|---|---|
| losses that people use most, `lossmith.make_loss` | [`lossmith.losses`](losses.md) |
{top}

```{{toctree}}
:hidden:
{tree}
```
"""
