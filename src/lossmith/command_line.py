"""The command ``lossmith``."""

import argparse
import os
import sys
from collections.abc import Sequence

from lossmith import __version__
from lossmith.commands import COMMANDS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 where the input is at fault."""
    options = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lossmith", description="Which loss should I train my classifier with?")
    parser.add_argument("--version", action="version", version=f"lossmith {__version__}")
    parser.set_defaults(run=lambda _: parser.print_help())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        subparser = commands.add_parser(command.NAME, help=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser
