"""The command ``lossmith``."""

import argparse
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import NoReturn

from lossmith import __version__
from lossmith.commands import COMMANDS
from lossmith.commands.printing.colour import painted
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import shortened

__all__ = ["main"]

_LONGEST_ERROR = 1000  # a line that a terminal wraps is still a line; a megabyte is none


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Whatever goes wrong is one line on the standard error stream. Where that was not foreseen, the line names a file with the
    details, for a report of it.

    Args:
        arguments: The words after ``lossmith``; those of this process unless given.

    Returns:
        The exit code: 0; 2 where the input is at fault; 1 where a worker process died or something happened that should not;
        130 after an interrupt.

    >>> main(["show", "gec"])  # doctest: +SKIP
    2
    """
    try:
        _run(arguments)
    except BrokenPipeError:  # what reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "stopped.", 130, before="\n")
    except ModuleNotFoundError as error:
        words = f"this needs {error.name}, which is not installed: pip install 'lossmith[all]'."
        return _fail(str(error) if "pip install" in str(error) else words, 2)
    except ChildProcessError as error:
        return _fail(_in_words(error), 1)
    except (ValueError, OSError) as error:
        return _fail(_in_words(error), 2)
    except Exception as error:  # noqa: BLE001 - nobody is helped by a traceback on the screen
        return _fail(_unforeseen(error), 1)
    return 0


def _run(arguments: Sequence[str] | None) -> None:
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    del options.parser
    options.run(options)
    sys.stdout.flush()


def _fail(message: str, code: int, *, before: str = "") -> int:
    print(f"{before}{painted('lossmith:', 'red', sys.stderr)} {_one_line(message)}", file=sys.stderr)
    return code


def _one_line(message: str) -> str:
    """Return a message without line ends, and without signs that a terminal would obey."""
    words = " ".join(line.strip() for line in message.splitlines() if line.strip())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in words)


def _in_words(error: Exception) -> str:
    """Return what went wrong; errors of the system without their number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{shortened(str(error.filename), _LONGEST_ERROR)}: {error.strerror[0].lower()}{error.strerror[1:]}."
    return str(error) or type(error).__name__


def _unforeseen(error: Exception) -> str:
    """Keep all that is known of an error in a file, and return one line that names it."""
    first = str(error).strip().partition("\n")[0].rstrip(".")
    said = f"{type(error).__name__}: {first}" if first else type(error).__name__
    try:
        with tempfile.NamedTemporaryFile("w", prefix="lossmith-error-", suffix=".txt", delete=False, encoding="utf-8") as file:
            file.write(f"lossmith {__version__}: {' '.join(sys.argv[1:])}\n\n{''.join(traceback.format_exception(error))}")
    except (OSError, ValueError):  # no room, or text that no file takes
        return f"this should not have happened: {said}."
    return f"this should not have happened: {said}. Details are in {file.name}"


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
        message = shortened(message, _LONGEST_ERROR)
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
    commands.choices["completion"].set_defaults(root=parser, commands=dict(commands.choices))
    return parser
