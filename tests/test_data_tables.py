"""Tables as people have them."""

import gzip

import numpy as np
import pandas as pd
import pytest
import torch

from lossmith.data import load_data
from lossmith.data.sparse_rows import as_tensor

ROWS = 240
WORDS = {
    "good": ["lovely", "tasty", "great", "friendly"],
    "bad": ["awful", "cold", "rude", "slow"],
    "ok": ["fine", "average", "usual", "plain"],
}


def reviews(rows=ROWS, seed=0):
    """Make reviews with text, categories, dates, gaps and a number in which the class shows."""
    draw = np.random.default_rng(seed)
    classes = draw.choice(list(WORDS), rows)
    texts = [" ".join(draw.choice([*WORDS[label], "the", "food", "was", "we"], draw.integers(5, 12))) for label in classes]
    return pd.DataFrame(
        {
            "Review text": [f"{text}, n° {place}" for place, text in enumerate(texts)],
            "city": draw.choice(["Köln", "Paris", "Roma", "a \"quoted\", name"], rows),
            "stars (1-5)": np.where(draw.random(rows) < 0.2, np.nan, draw.integers(1, 6, rows)),
            "visited": pd.date_range("2024-01-01", periods=rows, freq="17h").strftime("%Y-%m-%d %H:%M"),
            "vip": draw.choice([True, False], rows),
            "price": draw.lognormal(3, 1, rows).round(2),
            "currency": "EUR",
            "id": draw.permutation(10 * rows)[:rows],
            "Rating": classes,
        }
    )  # fmt: skip


def column_free(frame, *columns):
    return frame.drop(columns=list(columns))


def test_a_table_with_everything_works_the_first_time(tmp_path):
    path = tmp_path / "my reviews.csv"
    frame = reviews()
    frame.loc[[3, 50], "Rating"] = None
    frame.loc[7, "city"] = None
    frame.columns = ["\ufeffReview text", " city ", *frame.columns[2:]]
    path.write_text(frame.to_csv(index=False), encoding="utf-8")
    data = load_data(path, target="rating")
    assert data.name == "my reviews.csv"
    assert data.classes == ("bad", "good", "ok")
    assert data.labels.tolist() == frame["Rating"].dropna().map({"bad": 0, "good": 1, "ok": 2}).tolist()
    assert data.inputs.dtype == torch.float32
    assert as_tensor(data.inputs).isfinite().all()
    assert len(data.train) + len(data.validation) + len(data.test) == ROWS - 2
    said = "\n".join(data.notes)
    assert "numbers: 'stars (1-5)', 'vip', 'price'; categories: 'city'; dates: 'visited'; text: 'Review text'" in said
    assert "2 rows have no label: left out" in said
    assert "'currency': dropped, constant in training rows" in said
    assert "'id': dropped" in said
    assert "missing values: 'city' 0.4%, 'stars (1-5)' " in said


def test_what_is_in_the_columns_can_be_learnt(tmp_path):
    path = tmp_path / "reviews.csv"
    reviews().to_csv(path, index=False)
    data = load_data(path, target="Rating")
    from sklearn.linear_model import RidgeClassifier

    model = RidgeClassifier().fit(as_tensor(data.inputs[data.train]), data.labels[data.train])
    assert model.score(as_tensor(data.inputs[data.test]), data.labels[data.test]) > 0.9


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_separators_and_encodings(tmp_path, separator, encoding):
    frame = column_free(reviews(60), "Review text")
    expected = load_data(frame, target="Rating")
    path = tmp_path / "table.csv"
    path.write_text(frame.to_csv(index=False, sep=separator), encoding=encoding)
    found = load_data(path, target="Rating")
    assert torch.equal(as_tensor(found.inputs), as_tensor(expected.inputs))
    assert found.notes == expected.notes


def test_compressed_tables_and_parquet_read_alike(tmp_path):
    frame = reviews(60)
    expected = load_data(frame, target="Rating")
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_csv(tmp_path / "table.tsv", sep="\t", index=False)
    for name in ("table.csv.gz", "table.parquet", "table.tsv"):
        assert torch.equal(as_tensor(load_data(tmp_path / name, target="Rating").inputs), as_tensor(expected.inputs))


def test_numbers_are_standardised_on_training_rows_and_gaps_filled_with_their_mean():
    frame = column_free(reviews(), "Review text", "city", "visited", "vip", "price", "currency", "id")
    data = load_data(frame, target="Rating")
    stars = frame["stars (1-5)"].to_numpy()
    known = stars[data.train][~np.isnan(stars[data.train])]
    gaps = np.isnan(stars)
    expected = np.where(gaps, 0.0, (stars - known.mean()) / known.std())
    np.testing.assert_allclose(data.inputs.numpy(), np.stack([expected, gaps], axis=1), atol=1e-6)


def test_nothing_outside_the_training_rows_changes_how_they_are_encoded():
    frame = reviews()
    before = load_data(frame, target="Rating")
    test = before.test.numpy()
    frame.loc[test, "price"] *= 1000
    frame.loc[test, "city"] = "elsewhere"
    frame.loc[test, "Review text"] = "words that nobody ever wrote before"
    frame.loc[test, "stars (1-5)"] = np.nan
    after = load_data(frame, target="Rating")
    assert torch.equal(as_tensor(before.inputs[before.train]), as_tensor(after.inputs[after.train]))


def test_categories():
    levels = ["a"] * 30 + ["b"] * 28 + ["rare"] + [None]
    frame = pd.DataFrame({"level": levels, "split": ["train"] * 60, "class": ["x", "y"] * 30})
    new = pd.DataFrame({"level": ["a", "never seen", None, "rare"], "class": ["x", "y", "x", "y"]})
    data = load_data(frame, target="class", test=new.assign(split="test"), split_column="split", validation_share=0.0)
    a, b, other, missing = torch.eye(4)
    assert torch.equal(data.inputs[:1], a[None])
    assert torch.equal(data.inputs[[30, 58, 59]], torch.stack([b, other, missing]))
    assert torch.equal(data.inputs[data.test], torch.stack([a, other, missing, other]))
    assert any("'level': 1 of 3 categories are rare" in note for note in data.notes)


def test_written_numbers():
    written = {
        "size": ["1,5", "2,5", "3", "4,25"],
        "n": ["1", "2", " 3", "4e1"],
        "price": ["$3.50", "$999", "$1,000.10", "$12,000"],
        "share": ["3 %", "4 %", "5.5 %", "20 %"],
        "preis": ["9,99 €", "99,00 €", "1.000,00 €", "2.500,00 €"],
    }
    frame = pd.DataFrame({column: values * 10 for column, values in written.items()} | {"y": [0, 1] * 20})
    data = load_data(frame)
    assert "numbers: 'size', 'n', 'price', 'share', 'preis'" in data.notes[1]
    numbers = np.array(
        [[1.5, 1, 3.5, 3, 9.99], [2.5, 2, 999, 4, 99], [3, 3, 1000.1, 5.5, 1000], [4.25, 40, 12000, 20, 2500]] * 10
    )
    known = numbers[data.train]
    np.testing.assert_allclose(data.inputs.numpy(), (numbers - known.mean(0)) / known.std(0), atol=1e-5)


def test_lists_are_refused():
    with pytest.raises(ValueError) as error:
        load_data(pd.DataFrame({"a": [[1, 2], [3, 4]] * 10, "y": [0, 1] * 10}))
    assert str(error.value) == "table: column 'a' must hold single values, got list."


def test_dates_are_read_day_first_where_only_that_makes_sense():
    days = pd.date_range("2024-03-01", periods=40)
    frame = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "y": [0, 1] * 20})
    data = load_data(frame)
    assert "dates: 'day'" in "".join(data.notes)
    elapsed = data.inputs[:, 0].double()
    torch.testing.assert_close(elapsed.diff(), elapsed.diff()[:1].expand(39), rtol=1e-4, atol=1e-6)


def test_words_are_numbered_by_training_texts():
    data = load_data(reviews(), target="Rating", text="words")
    assert data.inputs.dtype == torch.int64
    assert data.inputs.min() == 0
    assert data.inputs[:, 0].min() >= 1
    assert any("'city'" in note and "not" in note for note in data.notes)
    train = data.inputs[data.train]
    assert set(data.inputs.unique().tolist()) == set(train.unique().tolist()) | {0, 1}
    with pytest.raises(ValueError, match="text='words' needs a column of texts, got 'price'"):
        load_data(reviews()[["price", "Rating"]], target="Rating", text="words")


def test_labels_that_are_whole_numbers_in_disguise():
    frame = pd.DataFrame({"a": range(0, 90, 3), "b": np.random.default_rng(0).random(30), "label": [10.0, 2.0, 1.0] * 10})
    data = load_data(frame)
    assert data.classes == ("1", "2", "10")
    assert data.labels[:3].tolist() == [2, 1, 0]


def test_duplicate_names_stay_apart(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x, x ,x,label\n" + "\n".join(f"{i},{i % 7},{i % 5},{i % 2}" for i in range(0, 60, 2)) + "\n1,2,3,1\n" * 9)
    data = load_data(path)
    assert data.inputs.shape[1] == 3
    assert "column 'x' comes again: called 'x.1'" in "\n".join(data.notes)


def test_a_file_without_header(tmp_path):
    path = tmp_path / "iris.txt"
    draw = np.random.default_rng(0)
    path.write_text("\n".join(f"{draw.random():.3f},{draw.random():.3f},{label}" for label in ["setosa", "virginica"] * 20))
    data = load_data(path)
    assert len(data.labels) == 40
    assert data.notes[:2] == (
        "the file has no header: columns are called column1, column2, ...",
        "target: column 'column3', the last one and the only one that is not numbers",
    )


def test_numbered_columns_are_a_header(tmp_path):
    path = tmp_path / "table.csv"
    draw = np.random.default_rng(0)
    pd.DataFrame(draw.random((30, 4))).assign(target=[0, 1] * 15).to_csv(path, index=False)
    assert load_data(path).inputs.shape == (30, 4)


def test_split_columns_and_true_labels():
    frame = reviews(90).assign(part=["Train", "valid", "TEST"] * 30)
    frame["given"] = frame["Rating"].where(frame.index % 9 != 0, "good")
    data = load_data(frame, target="given", true_label="Rating", split_column="part")
    assert torch.equal(data.train, torch.arange(0, 90, 3))
    assert torch.equal(data.validation, torch.arange(1, 90, 3))
    assert torch.equal(data.test, torch.arange(2, 90, 3))
    names = np.array(data.classes)
    assert names[data.true_labels].tolist() == frame["Rating"].tolist()
    assert names[data.labels].tolist() == frame["given"].tolist()
    wrong = (frame["given"] != frame["Rating"])[::3].mean()
    assert f"training labels that differ from the true labels: {wrong:.1%}" in data.notes


def test_a_test_table_of_its_own(tmp_path):
    reviews(90).to_csv(tmp_path / "train.csv", index=False)
    reviews(30, seed=1).assign(more=1).to_csv(tmp_path / "test.csv", index=False)
    data = load_data(tmp_path / "train.csv", test=tmp_path / "test.csv", target="Rating")
    assert torch.equal(data.test, torch.arange(90, 120))
    assert len(data.validation) == pytest.approx(0.15 * 90, abs=1)
    with pytest.raises(ValueError, match="the test table must have the same columns, got none called 'price'"):
        load_data(reviews(90), test=reviews(30).drop(columns="price"), target="Rating")


def test_groups_by_column_by_name_and_in_order():
    frame = reviews(60)
    coarse = {"good": "sure", "bad": "sure", "ok": "unsure"}
    frame["coarse"] = frame["Rating"].map(coarse)
    by_column = load_data(frame, target="Rating", groups="coarse")
    assert by_column.groups == (0, 0, 1)
    assert load_data(column_free(frame, "coarse"), target="Rating", groups=coarse).groups == (0, 0, 1)
    assert load_data(column_free(frame, "coarse"), target="Rating", groups=[5, 5, 2]).groups == (0, 0, 1)
    frame.loc[0, "coarse"] = "other"
    with pytest.raises(ValueError, match="column 'coarse' must have one group for each class, got several for"):
        load_data(frame, target="Rating", groups="coarse")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty."),
        (b" \n \n", "the file is empty."),
        (b"a,label\n", "the table has a header but no rows."),
        (b"just words\nin lines\n", "not a table: needs a target and something to tell it from, got columns ['just words']."),
        (b"\x89PNG\0\0\0", "not a table of text, but binary data."),
        (b'a,label\n1,2\n"1,2\n1,2\n', "not a table: a quotation mark is never closed."),
        (b"a,label\n1,2\n1,2\n1,2\n1,2\n1,2,3\n", "not a table: line 6 has 3 fields where 2 were expected."),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        load_data(path, target="label")
    assert str(error.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "ratng"}, "table: no column 'ratng'; did you mean 'Rating'? The columns are 'price', 'city', 'Rating'."),
        ({}, "table: target must be given, the column that holds the classes. The columns are 'price', 'city', 'Rating'."),
        ({"target": "Rating", "split_column": "city"}, "table: column 'city' must say train, validation or test, got 'Roma'."),
        ({"target": "Rating", "text": "tokens"}, "load_data: text must be 'ngrams' or 'words', got 'tokens'."),
        ({"target": "Rating", "test_share": 1.5}, "load_data: test_share must be in [0, 1), got 1.5."),
        ({"target": "price"}, "table: needs two rows a class at least, got 240 rows for 240 classes. Is the target a quantity?"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError) as error:
        load_data(reviews()[["price", "city", "Rating"]].assign(city="Roma", price=np.arange(ROWS) * 1.5), **options)
    assert str(error.value) == message


def test_one_class_only():
    with pytest.raises(ValueError, match=r"table: needs two classes at least, got only 'same'\."):
        load_data(pd.DataFrame({"a": [1, 2, 3], "y": ["same"] * 3}))


def test_nothing_but_constants():
    with pytest.raises(ValueError, match="no column tells rows from one another"):
        load_data(pd.DataFrame({"a": [1] * 30, "y": [0, 1] * 15}))


def test_saved_row_numbers_and_separators_at_the_end_are_no_features(tmp_path):
    frame = reviews(60)[["price", "city", "Rating"]]
    expected = load_data(frame, target="Rating")
    frame.to_csv(tmp_path / "numbered.csv")
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "shuffled.csv")
    lines = frame.to_csv(index=False).splitlines()
    (tmp_path / "closed.csv").write_text("\n".join(f"{line}," for line in lines))
    (tmp_path / "named rows.csv").write_text("\n".join([lines[0], *(f"row{i},{line}" for i, line in enumerate(lines[1:]))]))
    for name in ("numbered.csv", "closed.csv", "named rows.csv"):
        assert torch.equal(as_tensor(load_data(tmp_path / name, target="Rating").inputs), as_tensor(expected.inputs))
    assert "'unnamed1': dropped" in "\n".join(load_data(tmp_path / "shuffled.csv", target="Rating").notes)


def test_infinite_numbers_are_missing_and_reported():
    frame = pd.DataFrame({"a": [*np.linspace(0, 1, 29), np.inf], "y": [0, 1] * 15})
    data = load_data(frame)
    assert as_tensor(data.inputs).isfinite().all()
    assert "column 'a' has 1 infinite numbers: taken as missing" in data.notes


def test_equal_rows_are_reported():
    frame = pd.DataFrame({"a": np.repeat(np.random.default_rng(0).random(20), 2), "y": [0, 0, 1, 1] * 10})
    frame.loc[0, "y"] = 1
    said = "\n".join(load_data(frame).notes)
    assert "duplicates of an earlier row: 20" in said
    assert "same inputs as a row of another class, which nobody can tell apart: 2" in said
    assert "test rows with the same inputs as a training or validation row" in said


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_separator_that_texts_hold_too(tmp_path, ending):
    lines = [f"well, {place}; hm | \t{place % 2}" for place in range(40)]
    (tmp_path / "texts.txt").write_bytes(ending.join(["text\tlabel", *lines]).encode())
    data = load_data(tmp_path / "texts.txt")
    assert "read as text: 'text'" in data.notes
    assert data.labels.tolist() == [0, 1] * 20


def test_long_texts(tmp_path):
    frame = pd.DataFrame({"text": [f"{place} " + "long story " * 20_000 for place in range(12)], "label": [0, 1] * 6})
    frame.to_csv(tmp_path / "long.csv", index=False)
    assert len(load_data(tmp_path / "long.csv").labels) == 12


def test_spans_of_time_and_periods():
    frame = pd.DataFrame({"span": pd.to_timedelta(np.arange(40) ** 2, unit="h"), "label": [0, 1] * 20})
    frame["month"] = pd.period_range("2020-01", periods=40, freq="M")
    assert "read as numbers: 'span'; dates: 'month'" in load_data(frame).notes


def test_a_table_and_its_labels_apart():
    frame = reviews(60)
    apart = load_data((frame.drop(columns="Rating"), frame["Rating"]))
    assert torch.equal(as_tensor(apart.inputs), as_tensor(load_data(frame, target="Rating").inputs))


def test_too_few_rows_to_divide():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    with pytest.raises(ValueError) as error:
        load_data(frame)
    assert str(error.value) == "table: no class has enough rows, 3 at least, to leave any for the validation split."
    assert len(load_data(frame, validation_share=0.0, test_share=0.0).train) == 4


def test_resize_is_for_images() -> None:
    with pytest.raises(ValueError, match=r"^load_data: resize is for folders of images, got it for iris\.$"):
        load_data("iris", resize=8)


def test_a_quantity_as_target_is_pointed_out() -> None:
    table = pd.DataFrame({"a": np.arange(40.0), "dose": np.tile([0.5, 1.0], 20)})
    assert any("fractions" in note for note in load_data(table, target="dose").notes)
    assert not any("fractions" in note for note in load_data(table.assign(dose=table.dose * 2), target="dose").notes)
    with pytest.raises(ValueError, match=r"got 40 rows for 40 classes\. Is the target a quantity\?$"):
        load_data(table.assign(dose=np.arange(40) / 7), target="dose")
