"""The map of losses, and advice that cites it."""

import json

import pandas as pd
import pytest

from evidence.map.leave_out import advised, best_neighbours, judged, summary
from evidence.map.means import differences, map_means, uneven_means, wrong_share
from evidence.map.page import page, picture
from evidence.map.ship import write_map
from fake_study import full_study
from lossmith import advise
from lossmith.command_line import main
from lossmith.studies.answer import answer_of
from lossmith.theory import advice as advice_module
from lossmith.theory import advice_table
from lossmith.theory.studied.loss_map import COLUMNS, LossMap, shipped_map
from lossmith.theory.studied.similar_data import Task, similar_data


def cells(lead=0.04, sets=8, kind="table"):
    """Return sets of 2 to 9 classes on which gce is ahead under noise by about ``lead``, and behind without."""
    rows = []
    for place in range(sets):
        for noise, ahead in (("none", -0.01), ("symmetric(0.2)", lead + place / 1000), ("pair(0.2)", lead)):
            for loss, accuracy in (("ce", 0.8), ("gce", 0.8 + ahead), ("focal", 0.79)):
                about = {"data": f"{kind}{place}", "kind": kind, "rows": 100 * (place + 1), "classes": place + 2}
                rows.append({**about, "noise": noise, "loss": loss, "seed": 0, "accuracy": accuracy})
    return pd.DataFrame(rows)


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "map"
    folder.mkdir()
    cells().to_csv(folder / "cells.csv", index=False)
    return tmp_path


@pytest.fixture
def small_map(results, tmp_path):
    return write_map(map_means(results)[0], tmp_path / "map.csv", protocol="a test", neighbours=4)


def test_a_map_is_read_as_it_was_written(small_map):
    assert len(small_map.sets) == 8
    assert small_map.losses == ("ce", "gce", "focal")
    first = small_map.sets[0]
    assert (first.rows, first.classes, sorted(first.accuracy)) == (100, 2, [0.0, 0.2])
    assert small_map.sets[4].difference(0.2, "gce") == pytest.approx(0.042)  # the mean of symmetric and pair
    assert first.difference(0.2, "mae") is None


def test_data_is_not_compared_with_itself(small_map):
    for source in ("table3", "table3.csv", "folder/table3.csv", "keel:table3"):
        assert [each.name for each in small_map.sets if each not in small_map.beside(source).sets] == ["table3"]
    assert len(small_map.beside("table33").sets) == len(small_map.sets)


def test_a_file_that_is_no_map_is_named(tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("#{}\na,b\n1,2\n")
    with pytest.raises(ValueError, match=r"other.csv: columns must be data, kind"):
        LossMap.read(file)


def test_the_nearest_sets_count_at_the_nearest_noise(small_map):
    found = similar_data(small_map, Task(classes=2, noise=0.3, rows=100, kind="table"))
    assert found.sets == ("table0", "table1", "table2", "table3")
    assert (found.noise, found.classes, found.rows) == (0.2, (2, 5), (100, 400))
    best = found.records[0]
    assert (best.loss, best.sets, best.ahead) == ("gce", 4, 4)
    assert best.difference == pytest.approx(0.04075)
    assert best.low < best.difference < best.high
    assert found.advised == "gce"
    assert similar_data(small_map, Task(classes=2, noise=0.05)).advised == "ce"


@pytest.mark.parametrize("task", [Task(2, kind="image"), Task(1000, kind="table"), Task(10)])
def test_the_map_is_silent_where_nothing_is_like_a_task(small_map, task):
    assert similar_data(small_map, task) is None


def test_advice_cites_what_happened(small_map, monkeypatch, capsys):
    for module in (advice_module, advice_table):
        monkeypatch.setattr(module, "shipped_map", lambda: small_map)
    main(["advise", "--classes", "3", "--noise", "0.2", "--rows", "300", "--kind", "table", "--loss", "ce", "--loss", "gce"])
    shown = capsys.readouterr().out
    assert "gce beat ce on 4 of 4 tables with 20% wrong labels, +4.1 points (" in shown
    assert "8 data sets were studied in all" in shown
    assert "Advised: gce." in shown
    main(["advise", "--classes", "3", "--noise", "0.2", "--kind", "text", "--loss", "ce", "--json"])
    assert json.loads(capsys.readouterr().out)["studied"] is None


@pytest.fixture
def uneven_results(results):
    """Eight sets judged by accuracy, and five of uneven classes on which balanced-softmax is ahead by balanced accuracy."""
    leads = {"ce": 0.0, "balanced-softmax": 0.1, "focal": -0.01}
    rows = [
        {"data": f"tail{place}", "kind": "table", "rows": 300, "classes": 3, "imbalance": 0.01 * (place + 1), "loss": loss}
        | {"seed": seed, "balanced_accuracy": 0.6 + lead + place / 500 * (loss != "ce"), "accuracy": 0.9}
        for place in range(5)
        for seed in range(2)
        for loss, lead in leads.items()
    ]
    folder = results / "rare_classes"
    folder.mkdir()
    pd.DataFrame(rows).to_csv(folder / "results.csv", index=False)
    return results


@pytest.fixture
def uneven_map(uneven_results, tmp_path):
    means = pd.concat([map_means(uneven_results)[0], uneven_means(uneven_results)])
    return write_map(means, tmp_path / "both.csv")


def test_uneven_classes_are_advised_from_uneven_data_alone(uneven_map):
    found = similar_data(uneven_map, Task(classes=3, kind="table", imbalance=0.02))
    assert sorted(found.sets) == [f"tail{place}" for place in range(5)]
    assert found.advised == "balanced-softmax"
    assert found.records[0].difference == pytest.approx(0.104)
    even = similar_data(uneven_map, Task(classes=3, noise=0.2, kind="table"))
    assert not set(even.sets) & set(found.sets)
    assert "balanced-softmax" not in uneven_map.differences("table", 0.0)


def test_the_nearest_imbalance_counts_most(uneven_map):
    near = LossMap(uneven_map.sets, {"neighbours": 4})
    assert "tail0" not in similar_data(near, Task(classes=3, imbalance=0.06)).sets
    assert "tail4" not in similar_data(near, Task(classes=3, imbalance=0.005)).sets


def test_advice_for_uneven_classes_speaks_of_balanced_accuracy(uneven_map, monkeypatch, capsys):
    for module in (advice_module, advice_table):
        monkeypatch.setattr(module, "shipped_map", lambda: uneven_map)
    main(["advise", "--classes", "3", "--imbalance", "0.02", "--loss", "ce"])
    shown = capsys.readouterr().out
    assert (
        "balanced-softmax beat ce on 5 of 5 data sets of uneven classes with labels as they are, +10.4 points of balanced"
        in shown
    )
    with pytest.raises(ValueError, match=r"advise: imbalance must be .*, got 2"):
        advise(3, imbalance=2.0, losses=["ce"])


def test_the_page_has_a_part_for_uneven_classes(uneven_results):
    means, protocol = map_means(uneven_results, by_kind_of_noise=True)
    measured = {"table": [{"advice": "x"}], "sets": 8, "uneven_sets": 5, "uneven": [{"advice": "the map", "the best": "5 of 5"}]}
    text = page(differences(means), protocol, measured, uneven_means(uneven_results))
    assert "on 5 data sets whose rarest and most frequent class are between 1 to 20 and 1 to 100" in text
    assert "| balanced-softmax | +10.4 (" in text
    assert "The same on the 5 data sets of uneven classes" in text


def test_advice_checks_what_it_is_asked():
    with pytest.raises(ValueError, match=r"advise: kind must be one of table, text, image, got 'sound'."):
        advise(10, kind="sound", losses=["ce"])
    with pytest.raises(ValueError, match=r"advise: rows must be .*, got 0"):
        advise(10, rows=0, losses=["ce"])


def test_the_map_of_the_library_can_be_read_and_is_small():
    shipped = shipped_map()
    assert len(shipped.sets) >= 12
    assert all(each.kind in ("table", "text", "image") for each in shipped.sets)
    assert all("ce" in found for each in shipped.sets for found in each.accuracy.values())
    assert len(COLUMNS) == 8
    uneven = [each for each in shipped.sets if each.imbalance is not None]
    assert {each.kind for each in uneven} == {"table", "image"}
    assert all(0 < each.imbalance < 0.1 for each in uneven)


def test_a_set_that_is_left_out_does_not_advise_itself(small_map):
    only_here = {0.2: {"ce": 0.5, "gce": 0.4, "focal": 0.9}}
    odd = LossMap(
        (*small_map.sets[:4], small_map.sets[4].__class__("odd", "table", 300, 4, accuracy=only_here)), {"neighbours": 4}
    )
    found = judged(odd, advised).set_index(["data", "noise"]).loc[("odd", 0.2)]
    assert (found["advised"], found["best"]) == ("gce", "focal")
    assert found["behind"] == pytest.approx(0.5)


def test_advice_is_counted_with_its_interval(small_map):
    table = summary({"the map": judged(small_map, advised), "always ce": judged(small_map, lambda *_: "ce")})
    by_way = table.set_index(["advice", "wrong labels"])
    assert by_way.loc[("the map", "0.2"), "the best"].startswith("6 of 8:")  # for the fewest and the most classes it is silent
    assert by_way.loc[("always ce", "0.2"), "within one point of it"].startswith("0 of 8:")
    assert by_way.loc[("always ce", "0.0"), "the best"].startswith("8 of 8:")
    assert best_neighbours(small_map) is None  # all are equally good


def test_the_page_is_written_from_the_results(results):
    means, protocol = map_means(results, by_kind_of_noise=True)
    text = page(differences(means), protocol, {})
    assert "8 data sets (8 tables)" in text
    assert "| symmetric(0.2) (8) | 0 / 0 | 8 / 8" in text.replace("  ", " ").replace("  ", " ")
    assert "has not been measured yet" in text
    figure = picture(differences(means), ["gce", "focal"], ["none", "symmetric(0.2)"])
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written[:2] == ["-1.0", "-1.0"]


def test_shares_of_wrong_labels_are_read_from_noise():
    assert [wrong_share(noise) for noise in ("none", "symmetric(0.4)", "pair(0.2)")] == [0.0, 0.4, 0.2]


def test_a_study_of_a_table_takes_other_tables_into_account(tmp_path):
    study = full_study(tmp_path, {"ce": (0.80, 0.70, 0.60), "gce": (0.80, 0.71, 0.61)})
    assert answer_of(study).elsewhere == ()  # of unknown kind
    study.provenance["data"].update(kind="table", name="wine.csv")
    lines = answer_of(study).elsewhere
    assert any("23 other tables with 20 % wrong labels, gce is" in line for line in lines), lines
    study.provenance["data"].update(kind="text")
    assert answer_of(study).elsewhere == ()
    study.provenance["data"].update(kind="table")
    study.provenance["tune_on"] = "clean"  # another question
    assert answer_of(study).elsewhere == ()
