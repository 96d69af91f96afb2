"""Attack Lossmith, and tell what it did not stand: ``python -m attack --minutes 10 --seed 0``."""

import argparse
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from attack.kind import Kind, Tally, assault
from attack.kinds import KINDS

SHOWN = 5
"""Failures of each kind that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print attempts and failures of each kind, and return 1 if there was a failure."""
    options = _parser().parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    kinds = [KINDS[name] for name in options.kinds.split(",")] if options.kinds else list(KINDS.values())
    print(f"seed {seed}, {options.minutes:g} minutes\n{'kind':14}{'attempts':>10}{'failures':>10}", flush=True)
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        tallies = [_attacked(kind, kinds, options, seed, Path(folder)) for kind in kinds]
    for tally in tallies:
        _show(tally, seed)
    return int(any(tally.failures for tally in tallies))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all kinds together (default: 10)")
    parser.add_argument(
        "--seed", type=int, help="of chance; a failure names the one to repeat it with (default: another each time)"
    )
    parser.add_argument("--kinds", metavar="LIST", help=f"of {','.join(KINDS)} (default: all)")
    parser.add_argument("--attempt", type=int, metavar="N", help="this attempt of each kind alone")
    return parser


def _attacked(kind: Kind, kinds: Sequence[Kind], options: argparse.Namespace, seed: int, folder: Path) -> Tally:
    seconds = 60 * options.minutes * kind.share / sum(each.share for each in kinds)
    first, most = (options.attempt, 1) if options.attempt is not None else (0, None)
    tally = assault(kind, folder / kind.name, seed=seed, seconds=seconds, first=first, most=most)
    print(f"{kind.name:14}{tally.attempts:10}{len(tally.failures):10}", flush=True)
    return tally


def _show(tally: Tally, seed: int) -> None:
    for number, said in tally.failures[:SHOWN]:
        print(f"\n{said.strip()}\n  again: python -m attack --kinds {tally.kind} --seed {seed} --attempt {number}")
    if len(tally.failures) > SHOWN:
        print(f"\n... and {len(tally.failures) - SHOWN} more failures of {tally.kind}")


if __name__ == "__main__":
    sys.exit(main())
