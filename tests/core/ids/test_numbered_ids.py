from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.core.ids import encoding
from wisecrowd.core.ids.encoding import IdColumn, encode
from wisecrowd.core.ids.numbered_ids import Shape, find_shape, parse, texts_of

TEXTS = st.sampled_from([pa.string(), pa.large_string()])


@pytest.mark.parametrize(
    ("texts", "shape"),
    [
        (["task-001", "task-002"], (b"task-", b"")),
        (["img7.png", "img12.png"], (b"img", b".png")),
        (["7", "12"], (b"", b"")),
        (["task-5"], (b"task-", b"")),
        (["v2-task-10", "v2-task-11"], (b"v2-task-", b"")),
        (["été-1", "été-2"], ("été-".encode(), b"")),
    ],
)
def test_the_text_around_numbers_is_found(texts, shape):
    assert find_shape(pa.array(texts)) == Shape(*shape)


@pytest.mark.parametrize(
    "texts",
    [["cat", "dog"], ["cat"], ["a1", "b1"], ["a-1", "a-"], ["é1", "è1"], ["-1", "1"], ["1.5", "2"],
     ["9" * 17], [""], ["1", None], []],
)  # fmt: skip
def test_other_text_has_no_shape(texts):
    assert find_shape(pa.array(texts, pa.string())) is None


@given(st.lists(st.integers(0, 10**16 - 1), min_size=1), TEXTS, st.integers(0, 3))
def test_numbers_of_any_length_are_read(numbers, arrow_type, offset):
    shape = Shape(b"a-rather-long-prefix-", b"-and a suffix")
    texts = [f"a-rather-long-prefix-{n}-and a suffix" for n in numbers]
    array = pa.array(["skipped"] * offset + texts, arrow_type).slice(offset)
    found = parse(array, shape)
    assert found.values.tolist() == numbers
    assert found.canonical
    assert found.fewest_digits == min(len(str(n)) for n in numbers)
    assert found.most_digits == max(len(str(n)) for n in numbers)


@given(st.lists(st.integers(0, 10**9 - 1), min_size=1), st.integers(9, 16))
def test_padded_numbers_are_read(numbers, width):
    texts = pa.array([f"t{n:0{width}d}" for n in numbers])
    found = parse(texts, Shape(b"t", b""))
    assert found.values.tolist() == numbers
    assert found.fewest_digits == found.most_digits == width
    assert texts_of(found.values, Shape(b"t", b""), width).equals(texts)


@pytest.mark.parametrize(
    "texts",
    [["t1", "u2"], ["t1", "t"], ["t1", "t1a"], ["t1", "t-2"], ["t1", "t/2"], ["t1", "t:2"],
     ["t1", "t٣"], ["t1", None], ["t1", "t" + "9" * 17], ["t1", ""], ["t1", "t 2"]],
)  # fmt: skip
def test_a_value_of_another_form_is_noticed(texts):
    assert parse(pa.array(texts), Shape(b"t", b"")) is None
    # The same with equal lengths, which is read another way.
    longest = max(len((text or "").encode()) for text in texts)
    if longest <= 17 and None not in texts and "" not in texts:
        padded = [text[:1] + "0" * (longest - len(text.encode())) + text[1:] for text in texts]
        assert parse(pa.array(padded), Shape(b"t", b"")) is None or padded[1][1:].isdigit()


@pytest.mark.parametrize("byte", [b for b in range(1, 128) if not chr(b).isdigit()])
def test_no_other_byte_passes_for_a_digit(byte):
    for position in range(10):
        text = list("t0123456789")
        text[1 + position] = chr(byte)
        assert parse(pa.array(["t0123456789", "".join(text)]), Shape(b"t", b"")) is None


def test_leading_zeros_are_reported():
    assert not parse(pa.array(["t07", "t12"]), Shape(b"t", b"")).canonical
    assert not parse(pa.array(["t07", "t1"]), Shape(b"t", b"")).canonical
    assert parse(pa.array(["t0", "t12"]), Shape(b"t", b"")).canonical


@given(
    st.sets(st.integers(0, 10**12), min_size=1),
    st.sampled_from(["", "t", "é"]),
    st.sampled_from(["", ".png", "a", "é", "-"]),
)
def test_unpadded_ids_sort_like_text_and_bare_integers_by_value(numbers, prefix, suffix):
    texts = [f"{prefix}{number}{suffix}" for number in numbers]
    column = IdColumn("task")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_TRY_NUMBERED", 1)
        column.add(pa.array(texts))
    expected = sorted(texts) if prefix or suffix else [str(number) for number in sorted(numbers)]
    encoded = column.finish()
    assert encoded.vocabulary.tolist() == expected
    assert encoded.vocabulary[encoded.codes].tolist() == texts


@pytest.mark.parametrize("suffix", ["", "-", "a"])
def test_short_numbers_that_begin_longer_ones(suffix):
    texts = [f"t{value}{suffix}" for value in (0, 1, 10, 19, 100, 109, 190, 191, 199)]
    assert encode(texts * 200, "task").vocabulary.tolist() == sorted(texts)
