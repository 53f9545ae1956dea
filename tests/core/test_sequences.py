"""CrowdSequences: tags and spans become checked annotations, or one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import BSC
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.sequence_truth import known_tags
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.span_errors import SPAN_ERRORS, compare_spans, span_counts
from wisecrowd.core.tag_scheme import Spans, TagScheme

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
        (["O O", "O X", "O"], {"scheme": "bio"}, r"The tag 'X' is not one of the scheme O, B-type"),
    ],
)  # fmt: skip
def test_bad_tags(tags, options, message):
    with pytest.raises(DataError, match=message):
        CrowdSequences.from_arrays(*WHO, tags, **options)


@pytest.mark.parametrize(
    ("start", "end", "label", "message"),
    [
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
