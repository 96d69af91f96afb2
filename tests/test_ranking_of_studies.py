"""Rankings over several studies: joined, told and drawn."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lossmith.command_line import main
from lossmith.report.rank_figure import draw_ranking
from lossmith.statistics.ranking import rank_losses
from lossmith.statistics.several_studies import joined_results, rank, ranking_text
from lossmith.statistics.summary import block_means
from lossmith.studies import compare
from study_frames import results_frame


def study(name: str, folder: str = "studies/x", **changes):
    means = {"ce": [0.9, 0.6], "gce": [0.91, 0.7], "mae": [0.7, 0.5]}
    return SimpleNamespace(folder=folder, provenance={"data": {"name": name}}, results=results_frame(means, **changes))


def test_joined_results_are_told_apart_by_data():
    joined = joined_results([study("digits"), study("wine")])
    assert block_means(joined, by=("data", "noise")).shape == (4, 3)
    assert set(joined["data"]) == {"digits", "wine"}


def test_the_same_data_twice_is_told_apart_by_folder():
    assert set(joined_results([study("digits", "a"), study("digits", "b")])["data"]) == {"a", "b"}
    with pytest.raises(ValueError, match=r"^rank: a study is named more than once\.$"):
        joined_results([study("digits", "a"), study("digits", "a")])


def test_no_results():
    empty = study("digits")
    empty.results = empty.results.iloc[:0]
    with pytest.raises(ValueError, match=r"^rank: .* has no results yet\.$"):
        joined_results([empty])


def test_text():
    names = ["digits", "wine", "iris", "glass", "seeds"]
    results = joined_results([study(name, spread=0.001 * place) for place, name in enumerate(names)])
    lines = ranking_text(rank(results), "ce").splitlines()
    assert lines[0] == "Losses by accuracy over 5 data sets:"
    assert [line.split()[0] for line in lines[2:5]] == ["gce", "ce", "mae"]
    assert "untrained" not in lines[1]
    assert lines[5].startswith("Friedman's test: p = 0.0")
    assert lines[6].startswith("Not told apart (Conover, Benjamini-Hochberg): ")


def test_text_of_another_noise_level():
    results = joined_results([study("digits"), study("wine")])
    clean, noisy = (ranking_text(rank(results, noise=noise), "ce") for noise in (None, "symmetric(0.4)"))
    assert clean != noisy
    assert "over 2 data sets" in noisy


def test_text_with_untrained_cases():
    first, second = study("digits"), study("wine")
    second.results["untrained"] = np.where(second.results["loss"] == "mae", "predicts one class", "")
    first.results["untrained"] = ""
    ranking = rank(joined_results([first, second]))
    lines = ranking_text(ranking, "ce").splitlines()
    assert lines[1].endswith("untrained  difference where trained")
    assert ranking.summary.loc["mae", "untrained"] == 1
    assert "Untrained: data sets on which a loss looks untrained in at least half of the replicates." in lines
    second.results["untrained"] = first.results["untrained"] = np.where(first.results["loss"] == "mae", "predicts one class", "")
    whole = ranking_text(rank(joined_results([first, second])), "ce").splitlines()
    assert next(line for line in whole if line.startswith("mae")).split()[-2:] == ["2", "none"]


def test_text_of_one_data_set_and_of_missing_losses():
    results = joined_results([study("digits"), study("wine")])
    assert "nothing can be said" in ranking_text(rank(results[results["data"] == "wine"]), "ce")
    less = results[(results["loss"] != "mae") | (results["data"] == "wine")]
    assert ranking_text(rank(less), "ce").endswith("Left out, since not every loss has results: digits.")


@pytest.mark.parametrize("losses", [2, 7])
def test_figure(tmp_path, losses):
    blocks = pd.DataFrame(np.random.default_rng(losses).random((9, losses)), columns=[f"loss{n}" for n in range(losses)])
    file = draw_ranking(rank_losses(blocks), blocks, tmp_path / "new" / "ranks.png")
    with Image.open(file) as image:
        assert np.asarray(image.convert("L")).std() > 5  # something is drawn


def test_command(tmp_path, capsys):
    settings = {
        "losses": ["ce", "mae"],
        "noise": [0, 0.4],
        "seeds": 1,
        "epochs": 1,
        "rates": [0.1],
        "progress": False,
        "workers": 1,
    }
    folders = [str(compare(data, output=tmp_path / data, **settings).folder) for data in ("iris", "wine")]
    assert main(["rank", *folders, "--figure", str(tmp_path / "ranks.svg")]) == 0
    shown = capsys.readouterr().out
    assert "over 2 data sets" in shown
    assert (tmp_path / "ranks.svg").read_text("utf-8").startswith("<?xml")
    assert main(["rank", *folders, "--noise", "0.4", "--metric", "balanced-accuracy"]) == 0
    assert "Losses by balanced accuracy over 2 data sets" in capsys.readouterr().out
    assert main(["rank", *folders, "--noise", "0.3"]) != 0
    assert "rank: noise of iris must be one of none, symmetric(0.4), got symmetric(0.3)." in capsys.readouterr().err
