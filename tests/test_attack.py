"""A few seconds of each kind of attack; `make attack` is ten minutes of them, other ones each time."""

import sys

import pytest

from attack.__main__ import main
from attack.kind import Failure, Kind, assault
from attack.kinds import KINDS

ATTEMPTS = {"kills": 1, "damage": 12, "settings": 12, "expressions": 400, "inputs": 15, "losses": 200}
SEED = 1


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks for workers in /proc")
@pytest.mark.parametrize("name", KINDS)
def test_nothing_breaks(name, tmp_path):
    tally = assault(KINDS[name], tmp_path / name, seed=SEED, most=ATTEMPTS[name])
    assert tally.attempts == ATTEMPTS[name]
    assert tally.failures == []


def _fails_now_and_then(chance, folder, prepared):
    assert prepared == "made once"
    assert list(folder.iterdir()) == []
    if chance.random() < 0.3:
        raise Failure("broken") if chance.random() < 0.5 else KeyError("escaped")


def test_failures_are_told_and_can_be_repeated(tmp_path, monkeypatch, capsys):
    kind = Kind("own", _fails_now_and_then, lambda _: "made once")
    tally = assault(kind, tmp_path / "all", seed=3, most=40)
    assert tally.attempts == 40
    assert {said.strip().splitlines()[-1] for _, said in tally.failures} == {"broken", "KeyError: 'escaped'"}
    number = tally.failures[-1][0]
    again = assault(kind, tmp_path / "again", seed=3, first=number, most=1)
    assert [each[0] for each in again.failures] == [number]
    monkeypatch.setitem(KINDS, "own", kind)
    assert main(["--kinds", "own", "--seed", "3", "--attempt", str(number)]) == 1
    printed = capsys.readouterr().out
    assert f"again: python -m attack --kinds own --seed 3 --attempt {number}" in printed
    right = next(number for number in range(40) if number not in dict(tally.failures))
    assert main(["--kinds", "own", "--seed", "3", "--attempt", str(right)]) == 0
