"""The command ``lossmith``."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from lossmith import __version__
from lossmith.commands import COMMANDS
from lossmith.nearest import nearest

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 where the input is at fault."""
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    del options.parser
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # what reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as stop:
        print(f"\nlossmith: {stop or 'stopped.'}", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        print(f"lossmith: this needs {error.name}, which is not installed: pip install 'lossmith[all]'.", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(f"lossmith: {_in_words(error)}", file=sys.stderr)
        return 2
    return 0


def _in_words(error: ValueError | OSError) -> str:
    """Return what went wrong; errors of the system without their number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}."
    return str(error)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the word that was meant if one is like it."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and stop."""
        option = re.match(r"unrecognized arguments: (-[\w-]+)", message)
        command = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
        if option:
            known = [name for action in self._actions for name in action.option_strings]
            message = f"unknown option {option[1]}{nearest(option[1], known)}"
        elif command:
            message = f"unknown command {command[1]!r}{nearest(command[1], [each.NAME for each in COMMANDS])}"
        ends = message[-1] in ".?"
        self.exit(2, f"{self.prog}: {message}{'' if ends else '.'} See '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="lossmith", description="Which loss should I train my classifier with?")
    parser.add_argument("--version", action="version", version=f"lossmith {__version__}")
    parser.set_defaults(run=lambda _: parser.print_help(), parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        subparser = commands.add_parser(command.NAME, help=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, parser=subparser)
    return parser
