from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.core.encoding import IdColumn
from wisecrowd.core.short_text import WordTable, short_words

SHORT = st.text(max_size=8).filter(lambda text: len(text.encode()) <= 8)


@given(st.sets(SHORT, min_size=1, max_size=50), st.data())
def test_known_words_get_their_codes(known, data):
    known = sorted(known)
    table = WordTable(short_words(pa.array(known)))
    asked = data.draw(st.lists(st.sampled_from(known), min_size=1))
    codes = table.codes(short_words(pa.array(asked, pa.large_string())))
    if codes is None:  # only words that differ by zero bytes cannot be told apart by the table
        assert len({text.rstrip("\0") for text in known}) < len(known)
    else:
        assert codes.tolist() == [known.index(text) for text in asked]


@pytest.mark.parametrize("unknown", ["cow", "ca", "catt", "", "cat\0"])
def test_an_unknown_word_is_noticed(unknown):
    table = WordTable(short_words(pa.array(["cat", "dog"])))
    assert table.codes(short_words(pa.array(["dog", "cat"]))).tolist() == [1, 0]
    assert table.codes(short_words(pa.array(["cat", unknown]))) is None


@pytest.mark.parametrize("texts", [["a", None], ["nine bytes"], ["ééééé"], []])
def test_long_and_missing_text_has_no_words(texts):
    assert short_words(pa.array(texts, pa.string())) is None


def test_too_many_words_have_no_table():
    table = WordTable(short_words(pa.array([str(i) for i in range(300)])))
    assert table.codes(short_words(pa.array(["5"]))) is None


def test_a_column_learns_new_words_on_the_way():
    chunks = [["cat", "dog"] * 10, ["dog", "cat"], ["cow", "cat"], ["a longer label"], ["cow", ""]]
    column = IdColumn("label")
    for chunk in chunks:
        column.add(pa.array(chunk))
    encoded = column.finish()
    values = np.append(encoded.vocabulary, "")
    assert values[encoded.codes].tolist() == [value for chunk in chunks for value in chunk]
    assert encoded.vocabulary.tolist() == ["a longer label", "cat", "cow", "dog"]
