"""CrowdTexts: texts become checked annotations, and words that are compared."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from wisecrowd.core.columns import holds_texts
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import kind_of
from wisecrowd.io.tables import read
from wisecrowd.kinds.texts.container import CrowdTexts, known_texts
from wisecrowd.kinds.texts.words import TextRules, written

WHO = (["s", "s", "t"], ["bob", "ann", "ann"])


def test_texts_are_kept_as_written_and_sorted():
    data = CrowdTexts.from_arrays(*WHO, ["Two words.", "", "x"], weight=[1.0, 2.0, 3.0])
    assert data.to_dict()["text"].tolist() == ["", "Two words.", "x"]
    assert data.weights.tolist() == [2.0, 1.0, 3.0]
    assert data[[1]].text.tolist() == ["x"]
    assert pickle.loads(pickle.dumps(data)).text.tolist() == data.text.tolist()
    assert kind_of(data).name == "texts"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None, "b"], r"The text is missing in row 2; remove the row, or give an empty text"),
        (["a", float("nan"), "b"], r"The text is missing in row 2"),
        (["a", ["b"], "c"], r"The text column holds"),
        (["a", "b"], r"Columns have different lengths"),
        (["a", "b\ud800", "c"], r"The text column holds half a character .* in row 2; correct"),
    ],
)
def test_bad_texts(texts, message):
    with pytest.raises(DataError, match=message):
        CrowdTexts.from_arrays(*WHO, texts)


def test_an_empty_cell_is_an_empty_text(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("task,worker,text\nr1,ann,hello\nr1,bob,\n")
    assert read(path, type="texts").text.tolist() == ["hello", ""]
    assert read(path).notes == ("the column text makes these texts",)
    lines = tmp_path / "texts.jsonl"
    lines.write_text('{"task": "r", "worker": "a", "text": "x"}\n'
                     '{"task": "r", "worker": "b", "text": null}\n')  # fmt: skip
    with pytest.raises(DataError, match="The text is missing in row 2"):
        read(lines, type="texts")


@pytest.mark.parametrize(
    "columns",
    [["task", "worker", "text", "label"], ["task", "worker", "text", "mood"], ["task", "worker"]],
)
def test_a_column_text_beside_another_is_the_content_of_tasks(columns):
    assert not holds_texts(columns)


def test_a_text_column_does_not_hide_a_named_label(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,text\n1,a,yes\n1,b,yes\n2,a,no\n2,b,no\n")
    assert type(read(path, label="text")).__name__ == "CrowdLabels"


@pytest.mark.parametrize(
    ("rules", "text", "words"),
    [
        (TextRules(), "“Well-known”, he's O\u2019Neil (5%)!",
         ["well", "known", "he's", "o'neil", "5"]),
        (TextRules(), "'quoted' -- ... 'tis", ["quoted", "tis"]),
        (TextRules(), "हिन्दी में", ["हिन्दी", "में"]),
        (TextRules(), "e\u0301 \u00e9 ＡＢ", ["\u00e9", "\u00e9", "ab"]),
        (TextRules(ignore_case=False), "Ab aB", ["Ab", "aB"]),
        (TextRules(ignore_punctuation=False), "Yes, it-is.", ["yes,", "it-is."]),
        (TextRules(unit="character"), "你好。 a b", ["你", "好", "a", "b"]),
        (TextRules(normalise=lambda w: {"mr": "mister", "uh": ""}.get(w, w)), "Uh, Mr. X",
         ["mister", "x"]),
        (TextRules(), "a\0b\nc", ["a", "b", "c"]),
    ],
)  # fmt: skip
def test_words_that_are_compared(rules, text, words):
    assert rules.words(text) == words


def test_forms_make_the_text_again():
    for text in ("Well-known, “or” not?", "你好。 再见!", "one  two", "x", "- a ! (b) …"):
        for unit in ("word", "character"):
            coded = TextRules(unit=unit).code([text, "other"])
            forms = [coded.spellings[k] for k in coded.forms[: coded.pointer[1]].tolist()]
            assert written(forms).split() == text.split()


def test_long_runs_of_punctuation_take_linear_time():
    for text in ("." * 50_000, ". " * 50_000, "(" * 50_000 + "a"):
        assert len(TextRules().words(text)) == text.count("a")


def test_codes_order_longer_words_first_and_ignore_the_order_of_texts():
    coded = TextRules().code(["b aa", "c b"])
    assert coded.vocabulary == ["aa", "b", "c"]
    assert coded.words.tolist() == [1, 0, 2, 1]
    assert TextRules().code(["c b", "b aa"]).vocabulary == coded.vocabulary


def test_bad_rules():
    for rules in (TextRules(unit="line"), TextRules(ignore_case=1), TextRules(normalise="lower")):
        with pytest.raises(ParameterError):
            rules.check()
    with pytest.raises(DataError, match="normalise returns"):
        TextRules(normalise=lambda word: None).words("a")


def test_known_texts_in_all_forms():
    data = CrowdTexts.from_arrays(*WHO, ["a", "b", "c"])
    for truth in ({"s": "x", "t": ""}, ["x", ""], {"s": "x", "u": "y", "t": ""}):
        assert known_texts(truth, data).tolist() == ["x", ""]
    assert known_texts({"t": "y"}, data).tolist() == [None, "y"]
    with pytest.raises(DataError, match="names none of these tasks"):
        known_texts({"u": "y"}, data)
    with pytest.raises(DataError, match="3 entries for 2 tasks"):
        known_texts(np.array(["a", "b", "c"], dtype=object), data)
