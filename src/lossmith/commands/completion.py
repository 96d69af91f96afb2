"""``lossmith completion SHELL``."""

import argparse
import ast
from importlib.resources import files
from typing import Any

NAME = "completion"
HELP = "print the script that lets a shell complete commands, options, files and names of losses"
EPILOG = """where it goes:
  bash   lossmith completion bash > ~/.local/share/bash-completion/completions/lossmith
  zsh    lossmith completion zsh > ~/.zfunc/_lossmith, with fpath+=(~/.zfunc) before compinit in ~/.zshrc
  fish   lossmith completion fish > ~/.config/fish/completions/lossmith.fish
"""
SHELLS = ("bash", "zsh", "fish")

_WORDS = {
    "metric": ("accuracy", "balanced-accuracy", "macro-f1", "nll", "brier", "top5"),
    "optimizer": ("sgd", "adam", "adamw", "adadelta"),
    "schedule": ("constant", "cosine", "warmup-cosine", "exponential", "steps"),
    "select": ("last", "best"),
    "text": ("ngrams", "words"),
    "class_weight": ("none", "balanced", "effective"),
    "draws": ("common", "own"),
    "tune_on": ("own", "clean"),
    "precision": ("auto", "float32", "bfloat16"),
    "track": ("mlflow", "wandb", "tensorboard"),
}
"""What can be completed of options that take other words, too."""
_FOLDERS = ("STUDY", "FOLDER")
_FILES = ("DATA", "FILE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take a shell."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=SHELLS, help="whose script is printed")


def run(options: argparse.Namespace) -> None:
    """Print the script. It is made once: a shell that completes starts no Python."""
    import shtab

    for command, parser in options.commands.items():
        for action in parser._actions:
            _teach(command, action, shtab)
    print(shtab.complete(options.root, options.shell))


def _teach(command: str, action: Any, shtab: Any) -> None:
    """Say of an argument what it may be, for the script alone: on the command line it takes more."""
    if command == "show" and action.dest == "name":
        action.choices = loss_names()
    elif action.dest == "losses":
        action.complete = _list_of(loss_names())
    elif action.dest in _WORDS:
        action.choices = _WORDS[action.dest]
    elif action.metavar in _FOLDERS:
        action.complete = shtab.DIR
    elif action.metavar in _FILES:
        action.complete = shtab.FILE


def _list_of(names: list[str]) -> dict[str, Any]:
    """Return how each shell completes a name, or the last one of several with commas between them."""
    words = " ".join(names)
    in_bash = f"""
_lossmith_losses() {{
  local before=""
  [[ $1 == *,* ]] && before="${{1%,*}},"
  compgen -P "$before" -W "{words}" -- "${{1##*,}}"
}}"""
    return {
        "bash": "_lossmith_losses",
        "zsh": f"_values -s , loss {words}",
        "fish": "(__fish_complete_list , _lossmith_losses)",
        "preamble": {"bash": in_bash, "fish": f"function _lossmith_losses; printf '%s\\n' {words}; end"},
    }


def loss_names() -> list[str]:
    """Return the names of the losses, read from their source: to import them would import torch.

    >>> loss_names()[:3]
    ['agce', 'asl', 'backward-correction']
    """
    losses = files("lossmith") / "losses"
    folders = [losses, *(each for each in losses.iterdir() if each.is_dir() and each.name != "contract")]
    places = [file for folder in folders for file in folder.iterdir() if file.name.endswith(".py")]
    classes = [
        node for file in places for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)
    ]
    return sorted(name for made in classes for name in _names_of(made) if name)


def _names_of(made: ast.ClassDef) -> list[str]:
    """Return what a class assigns to ``name``."""
    assigned = [part for part in made.body if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant)]
    return [
        str(part.value.value)
        for part in assigned
        for target in part.targets
        if isinstance(target, ast.Name) and target.id == "name" and isinstance(part.value, ast.Constant)
    ]
