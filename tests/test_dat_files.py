"""Tables in files called .dat."""

import gzip

import numpy as np
import pytest
import torch

from lossmith.data import load_data
from score_tables import scores


def written(frame, path, separator, *, header):
    lines = [separator.join(map(str, row)) for row in frame.itertuples(index=False)]
    path.write_text("\n".join([separator.join(frame.columns), *lines] if header else lines) + "\n")
    return path


@pytest.mark.parametrize("separator", [",", ", ", ";", "\t", " ", "   "])
@pytest.mark.parametrize("header", [True, False])
def test_dat_files(tmp_path, separator, header):
    frame = scores()
    expected = load_data(frame, target="kind")
    data = load_data(written(frame, tmp_path / "scores.dat", separator, header=header), target="kind" if header else "column3")
    torch.testing.assert_close(data.inputs, expected.inputs)
    assert torch.equal(data.labels, expected.labels)
    assert data.classes == ("x", "y", "z")


def test_dat_files_with_spaces_at_the_ends_comments_and_compression(tmp_path):
    frame = scores()
    expected = load_data(frame, target="kind")
    lines = ["# measured in May", "", *(f"  {row.score}  {row.other} {row.kind} " for row in frame.itertuples())]
    with gzip.open(tmp_path / "scores.dat.gz", "wt") as file:
        file.write("\n".join(lines))
    torch.testing.assert_close(load_data(tmp_path / "scores.dat.gz", target=-1).inputs, expected.inputs)


KEEL = """@relation scores
@attribute score real [0.0, 4.0]
@attribute 'the other' real[0.0,1.0]
@attribute code {1, 2, 3}
@attribute Verdict{x,y,z}
@inputs score, the other, code
@outputs Verdict
@data
"""


def test_keel_files(tmp_path):
    frame = scores(code=np.arange(120) % 3 + 1)[["score", "other", "code", "kind"]]
    path = written(frame, tmp_path / "scores.dat", ", ", header=False)
    path.write_text(KEEL + path.read_text())
    data = load_data(path)
    assert "target: column 'Verdict', which the file calls its output" in data.notes
    assert "read as numbers: 'score', 'the other'; categories: 'code'" in data.notes
    assert data.classes == ("x", "y", "z")
    assert torch.equal(data.labels, load_data(frame, target="kind").labels)
    assert load_data(path, target="code").classes == ("1", "2", "3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("@attribute a real\n1\n", "lines with @attribute must be followed by one with @data, got none."),
        ("@attribute a real\n@data\n1, 2\n", "rows must have the 1 columns of the @attribute lines, got 2."),
        ("@relation r\n@attribute a real\n@attribute b {x}\n@data\n", "the table has a header but no rows."),
    ],
)
def test_damaged_keel_files(tmp_path, content, message):
    path = tmp_path / "damaged.dat"
    path.write_text(content)
    with pytest.raises(ValueError) as error:
        load_data(path)
    assert str(error.value) == f"{path}: {message}"
