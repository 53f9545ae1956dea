from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import formats
from wisecrowd.io.formats import FORMATS, SUFFIXES, Request, reader_for
from wisecrowd.io.sources import Source


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
def test_every_suffix_has_a_reader(suffix):
    assert callable(reader_for(Source(Path("a" + suffix)), "auto"))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_has_a_reader_for_any_name(name):
    assert callable(reader_for(Source(Path("a.txt")), name))


def test_standard_input_is_csv():
    assert reader_for(Source(None), "auto") is reader_for(Source(None), "csv")


def test_unknown_formats_are_refused():
    with pytest.raises(
        ParameterError, match=r"format of a.xlsx cannot be told .* format='csv' \(or"
    ):
        reader_for(Source(Path("a.xlsx")), "auto")
    with pytest.raises(ParameterError, match=r"no format 'parket' \(did you mean 'parquet'\?"):
        reader_for(Source(Path("a.csv")), "parket")


def test_a_new_format_is_one_entry(monkeypatch):
    monkeypatch.setitem(FORMATS, "mine", formats._listed)
    assert reader_for(Source(None), "mine") is formats._listed


def test_files_that_are_read_together_need_the_same_columns():
    request = Request({"task": None, "worker": None, "label": None})
    header = ["task", "worker", "label"]
    assert request.choose(header, Source(Path("a.csv"))) == dict(zip(header, header, strict=True))
    assert request.choose(["x", *header[::-1]], Source(Path("b.csv"))) == request.found
    with pytest.raises(
        DataError, match=r"c.csv has the columns 'task', 'worker', 'label', 'weight'"
    ):
        request.choose([*header, "weight"], Source(Path("c.csv")))
    with pytest.raises(DataError, match=r"d.csv: No column looks like the label"):
        request.choose(["task", "worker"], Source(Path("d.csv")))


def test_notes_are_kept_once():
    request = Request({})
    for sentence in ("a", None, "a", "b"):
        request.note(sentence)
    assert request.notes == ["a", "b"]
