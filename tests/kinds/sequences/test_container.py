"""CrowdSequences: tags and spans become checked annotations, or one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import BSC
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.metrics import SPAN_ERRORS, compare_spans, span_counts
from wisecrowd.kinds.sequences.tag_scheme import Spans, TagScheme

WHO = (["s", "s", "t"], ["ann", "bob", "ann"])


def test_tokens_workers_and_previous_tags():
    data = CrowdSequences.from_arrays(*WHO, [["O", "B-PER"], "B-PER  I-PER", "O O O"])
    assert data.classes.tolist() == ["O", "B-PER", "I-PER"]
    assert data.tags.tolist() == [0, 1, 1, 2, 0, 0, 0]
    assert data.token.tolist() == [0, 1, 0, 1, 2, 3, 4]
    assert data.previous.tolist() == [3, 0, 3, 1, 3, 0, 0]
    assert data.to_dict()["tags"].tolist() == ["O B-PER", "B-PER I-PER", "O O O"]
    part = data[[1]]
    assert part.length.tolist() == [3]
    assert part.tags.tolist() == [0, 0, 0]


def test_declared_tags_and_the_plain_scheme():
    data = CrowdSequences.from_arrays(*WHO, ["N V", "N N", "V V V"], classes=["V", "N", "X"])
    assert (data.scheme, data.classes.tolist()) == ("plain", ["V", "N", "X"])
    data = CrowdSequences.from_arrays(*WHO, ["O O", "O O", "O O O"], classes=["B-PER"])
    assert (data.scheme, data.classes.tolist()) == ("bio", ["O", "B-PER", "I-PER"])


@pytest.mark.parametrize(
    ("tags", "options", "message"),
    [
        (["O O", "O", "O"], {}, r"Task 's' has 2 tags in row 1 and 1 in row 2; every worker"),
        (["O O", None, "O"], {}, r"tags column is empty in row 2; give one tag per token"),
        (["O O", ["O", "B PER"], "O"], {}, r"The tag 'B PER' in row 2 is empty or has a space"),
        (["O O", "O B-PRE", "O"], {"classes": ["B-PER"]},
         r"The tag 'B-PRE' \(did you mean 'B-PER'\?\) in row 2 is not among the tags"),
        (["O O", "O X", "O"], {"scheme": "bio"},
         r"The tag 'X' in row 2 is not one of the scheme O, B-type, I-type, as other tags are"),
        (["O O", "O B-PER", "X"], {}, r"The tag 'X' in row 3 is not one of the scheme"),
        (["B-PER 0", "O O", "O"], {}, r"The tag '0'.* in row 1 is not one of the scheme"),
        (["B-PER I-PER", "O O", "S-LOC"], {}, r"The tag 'S-LOC' in row 3 is not one of the sch"),
        (["b-per i-per", "o x", "o"], {}, r"The tag 'x' in row 2 is not one of the scheme"),
        (["B-PER,O", "O,O", "O"], {}, r"The tag 'B-PER,O' in row 1 looks like several; put a sp"),
        (["NN, VB", "NN, NN", "NN"], {}, r"The tag 'NN,' in rows 1, 2 looks like several"),
        (["NN;VB", "NN;NN", "NN"], {}, r"The tag 'NN;.*' in row . looks like several"),
        (["O O", "[]", "O"], {}, r"tags column is empty in row 2"),
        (["O O", '["O", null]', "O"], {}, r"in row 2 has the tag None, which is not a word"),
        (["O O", "['O' x 'O']", "O"], {}, r"in row 2 is not a list of tags"),
        (["O X", "O B-PER", "O"], {"classes": ["B-PER"], "scheme": "bio"}, r"'X' .*not among"),
        (["O O", "O O", "O"], {"classes": ["B-PER", "X"], "scheme": "bio"}, r"tag 'X' is not one"),
    ],
)  # fmt: skip
def test_bad_tags(tags, options, message):
    with pytest.raises(DataError, match=message):
        CrowdSequences.from_arrays(*WHO, tags, **options)


BIO = "B-PER I-PER I-PER O B-LOC"


@pytest.mark.parametrize(
    "tags",
    [
        "B-PER I-PER E-PER O S-LOC",
        "B-PER I-PER L-PER O U-LOC",
        "I-PER I-PER I-PER O I-LOC",
        "B_PER I_PER I_PER O B_LOC",
        '["B-PER", "I-PER", "I-PER", "O", "B-LOC"]',
        "['B-PER', 'I-PER', 'I-PER', 'O', 'B-LOC']",
        "['B-PER' 'I-PER' 'I-PER' 'O' 'B-LOC']",
        "[B-PER, I-PER, I-PER, O, B-LOC]",
    ],
)
def test_every_notation_of_spans_is_read(tags):
    data = CrowdSequences.from_arrays(["s", "s"], ["ann", "bob"], [tags, tags])
    assert data.to_dict()["tags"].tolist() == [BIO, BIO]
    assert data.classes.tolist() == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert known_tags({"s": BIO}, data).tolist() == [3, 4, 4, 0, 1]
    if not tags.startswith("I-"):  # gold begins its spans
        assert known_tags({"s": tags}, data, "gold").tolist() == [3, 4, 4, 0, 1]


def test_lower_case_marks_spans_and_keeps_types():
    data = CrowdSequences.from_arrays(*WHO, ["b-per i-per", "o o", "o b-loc o"])
    assert data.to_dict()["tags"].tolist() == ["B-per I-per", "O O", "O B-loc O"]


@pytest.mark.parametrize(
    ("tags", "repaired"),
    [
        ("B-X I-Y", "B-X B-Y"),
        ("O I-X", "O B-X"),
        ("B-X E-X I-X S-X", "B-X I-X B-X B-X"),
        ("S-X E-X O", "B-X B-X O"),
    ],
)
def test_a_tag_that_continues_nothing_begins_a_span(tags, repaired):
    rows = ["s"] * 3, ["ann", "bob", "cem"]
    data = CrowdSequences.from_arrays(*rows, [tags] * 3)
    assert data.to_dict()["tags"].tolist() == [repaired] * 3
    assert BSC().fit(data).tags_.tolist() == [repaired]
    inner = [
        a[0] == "I" and b[0] == "B" for a, b in zip(tags.split(), repaired.split(), strict=True)
    ]
    assert any("begin one" in note for note in data.notes) == any(inner)


@pytest.mark.parametrize(
    "tags",
    [
        "NN VB , $, NNP",  # commas are tags of parts of speech
        "noun i-adj na-adj",
        "S-Bahn U-Bahn Bus",
        "e-mail o letter",
        "[CLS] DET NOUN [SEP]",
        "b_1 b_2 i_3",
    ],
)
def test_names_of_classes_are_not_marks_of_spans(tags):
    data = CrowdSequences.from_arrays(["s", "s"], ["ann", "bob"], [tags, tags])
    assert (data.scheme, data.to_dict()["tags"][0]) == ("plain", tags)


def test_declared_tags_are_as_they_are():
    tags = ["B-PER I-PER", "O S-LOC", "O O O"]
    data = CrowdSequences.from_arrays(*WHO, tags, classes=["O", "B-PER", "I-PER", "S-LOC", "X"])
    assert data.scheme == "plain"
    data = CrowdSequences.from_arrays(*WHO, tags, classes=["O", "B-PER", "E-PER", "S-LOC"])
    assert data.to_dict()["tags"].tolist() == ["B-PER I-PER", "O B-LOC", "O O O"]
    data = CrowdSequences.from_arrays(*WHO, tags, scheme="plain")
    assert data.to_dict()["tags"].tolist() == tags


def test_types_may_look_like_tags():
    rows = ["d", "d"], ["ann", "bob"], [0, 0], [5, 5]
    data = CrowdSequences.from_spans(*rows, ["B-cell", "T-cell"])
    assert data.tag_scheme.types == ("B-cell", "T-cell")
    with_tags = CrowdSequences.from_spans(*rows, ["PER", "PER"], classes=["O", "B-PER", "I-PER"])
    assert with_tags.tag_scheme.types == ("PER",)


def test_half_a_character_is_refused():
    rows = ["d", "d"], ["ann", "bob"], [0, 0], [5, 5]
    with pytest.raises(DataError, match=r"tags column holds half a character .* in row 2"):
        CrowdSequences.from_spans(*rows, ["PER", "P\ud800"])
    with pytest.raises(DataError, match=r"text column holds half a character .* in row 1"):
        CrowdSequences.from_spans(*rows, ["PER", "PER"], text=["P\ud800", "Paris"])
    with pytest.raises(DataError, match=r"text column holds half a character .* in row 2"):
        CrowdSequences.from_arrays(*WHO, ["O O", "O O", "O O O"],
                                   text=["a b", ["a", "\ud800"], "a b c"])  # fmt: skip


def test_lookalike_types_are_told():
    with pytest.warns(WisecrowdWarning, match="count as different classes and look the same"):
        CrowdSequences.from_arrays(*WHO, ["O B-PER", "O B-per", "O O O"])


@pytest.mark.parametrize(
    ("start", "end", "label", "message"),
    [
        (
            [0, None],
            [5, None],
            ["PER", "LOC"],
            r"The span of type 'LOC' in row 2 has neither start nor end; give both, or leave out",
        ),
        ([0, 6], [5, 9], ["PER", "O"], r"The span in row 2 has the type 'O', which stands for"),
        ([0, 6], [5, 9], ["B-PER", "I-PER"], r"The type 'I-PER' in row 2 is the tag of a token"),
        ([0, 3], [5, 9], ["PER", "LOC"], r"Two spans of one worker overlap, in rows 1, 2; keep"),
        ([0, 7], [5, 6], ["PER", "LOC"], r"The span in row 2 runs from 7 to 6; start is"),
        ([0, -1], [5, 6], ["PER", "LOC"], r"The span in row 2 runs from -1 to 6"),
        ([0, 6], [5, 9], ["PER", None], r"The span in row 2 has no type"),
        ([0, None], [5, 9], ["PER", "LOC"], r"The span in row 2 runs from nan to 9"),
    ],
)
def test_bad_spans(start, end, label, message):
    with pytest.raises(DataError, match=message):
        CrowdSequences.from_spans(["s", "s"], ["ann", "ann"], start, end, label)


def test_spans_cut_the_text_where_any_of_them_ends():
    rows = ["d", "d", "d", "e"], ["ann", "ann", "bob", "bob"]
    data = CrowdSequences.from_spans(*rows, [10, 0, 0, None], [14, 4, 8, None],
                                     ["LOC", "PER", "PER", None])  # fmt: skip
    assert data.task_columns["offsets"][0].tolist() == [0, 4, 8, 10, 14]
    tags = data.to_dict()["tags"].tolist()
    assert tags == ["B-PER O O B-LOC", "B-PER I-PER O O", "O"]
    assert data.offset.tolist() == [0, 4, 8, 10, 14, 0, 1]


def test_gold_and_truth():
    data = CrowdSequences.from_arrays(*WHO, ["O B-PER", "O B-PER", "O O O"])
    assert known_tags({"s": "B-PER I-PER"}, data).tolist() == [1, 2, -1, -1, -1]
    with pytest.raises(DataError, match="gives task 't' 2 tags, and workers gave it 3"):
        known_tags({"t": "O O"}, data)
    with pytest.raises(DataError, match=r"the tag 'B-LOC', which is not among the tags"):
        known_tags({"s": ["O", "B-LOC"]}, data)
    with pytest.raises(DataError, match="names none of these tasks"):
        known_tags({"u": "O"}, data)


def test_spans_of_tags_by_hand():
    scheme = TagScheme.of(["B-PER", "B-LOC"])
    code = {tag: k for k, tag in enumerate(scheme.tags)}
    tags = [code[t] for t in ["B-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER", "B-LOC"]]
    found = scheme.spans(np.array([*tags, code["I-LOC"]]), np.array([0, 7, 8]))
    kinds = [scheme.types[k] for k in found.kind]
    rows = list(zip(found.sequence, found.start, found.end, kinds, strict=True))
    assert rows == [(0, 0, 2, "PER"), (0, 2, 3, "PER"), (0, 4, 5, "LOC"), (0, 5, 6, "PER"),
                    (0, 6, 7, "LOC"), (1, 0, 1, "LOC")]  # fmt: skip


def test_kinds_of_errors_and_counts():
    wanted = Spans(*map(np.array, ([0, 0, 1], [1, 6, 0], [4, 8, 2], [0, 1, 0])))
    found = Spans(*map(np.array, ([0, 0, 0, 0, 1, 1], [1, 3, 6, 9, 1, 4], [2, 4, 8, 10, 4, 5],
                                  [0, 0, 0, 1, 0, 0])))  # fmt: skip
    codes = compare_spans(found, wanted, np.array([10, 6])).tolist()
    assert [SPAN_ERRORS[code] for code in codes] == [
        "split", "split", "wrong_type", "phantom", "shifted", "phantom",
    ]  # fmt: skip
    two = Spans(*map(np.array, ([0, 0], [1, 3], [3, 4], [0, 0])))
    alone = compare_spans(two, wanted, np.array([10, 6]), np.array([0, 1])).tolist()
    assert [SPAN_ERRORS[code] for code in alone] == ["too_short", "too_short"]  # of two workers
    scheme = TagScheme.of(["B-PER"])
    truth, tags = np.array([1, 2, 0, 1, -1]), np.array([1, 0, 0, 1, 1])
    pointer = np.array([0, 4, 5])
    assert span_counts(scheme, truth, tags, pointer, relaxed=False) == (1, 2, 2)
    assert span_counts(scheme, truth, tags, pointer, relaxed=True) == (2, 2, 2)


def test_fit_predict_returns_the_tags_of_tasks():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"task": ["s", "s", "t"], "worker": ["a", "b", "a"], "tags": ["B-X O", "B-X O", "O B-X"]}
    )
    found = BSC().fit_predict(frame)
    assert found.index.tolist() == ["s", "t"]
    assert found["s"] == "B-X O"


def test_words_survive_selection_and_saving(tmp_path):
    rows = ["d", "e"], ["ann", "ann"], [0, 2], [3, 5], ["PER", "LOC"]
    data = CrowdSequences.from_spans(*rows, text=["Ada laughs", "in Rome today"])
    assert data.words.tolist() == ["Ada", " Ro"]
    assert data[[1]].words.tolist() == [" Ro"]
    fitted = BSC().fit(data)
    fitted.save(tmp_path / "model")
    loaded = wc.load(tmp_path / "model")
    assert loaded.main_columns()["text"].tolist() == fitted.main_columns()["text"].tolist()
    without = CrowdSequences.from_spans(*rows)
    assert "text" not in BSC().fit(without).main_columns()


def test_limits_beyond_any_text_are_refused():
    with pytest.raises(DataError, match="runs from 0 to 1e\\+20"):
        CrowdSequences.from_arrays(["a"], ["w"], ["PER"], start=[0], end=[1e20])
