"""Turn columns of ids into int32 codes and a sorted vocabulary, without one object per row.

Arrow's ``dictionary_encode`` or :mod:`wisecrowd.core.ids.numbered_ids` does the work per row;
everything else touches distinct values only. Vocabularies of text are Python strings if they are
few. If they are many, they are compact strings of NumPy: a Python string of ten letters takes about
60 bytes and a pointer to it 8 more, NumPy's ``StringDType`` 16 bytes for ids of up to 15 bytes.
Both give Python strings when they are indexed or listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import (
    as_arrow,
    chunks_of,
    first_valid_row,
    indices_of,
    is_text,
    is_text_view,
    kind_of,
    refuse_strange_types,
    to_numpy,
    to_one_type,
)
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.numbered_ids import BARE, Shape, find_shape, parse, texts_of
from wisecrowd.core.ids.packed_sort import dense_codes, recode

MANY = 1 << 20  # ids from which the strings are compact; below, Python strings are faster to use
_TEXT_BLOCK = 1 << 16  # strings that exist as Python objects at a time


def empty_texts(size: int) -> NDArray[Any]:
    """Return an array for text ids, to be filled.

    Examples
    --------
    >>> empty_texts(3).dtype
    dtype('O')
    """
    if size < MANY:
        return np.empty(size, dtype=object)
    return np.empty(size, dtype=np.dtypes.StringDType())


def text_vocabulary(texts: Any) -> NDArray[Any]:
    """Return a pyarrow array of texts as a vocabulary."""
    if len(texts) < MANY:
        return np.asarray(texts.to_numpy(zero_copy_only=False), dtype=object)
    ids = empty_texts(len(texts))
    for start in range(0, len(texts), _TEXT_BLOCK):
        block = slice(start, start + _TEXT_BLOCK)
        ids[block] = texts[block].to_numpy(zero_copy_only=False)
    return ids


def is_text_ids(ids: NDArray[Any]) -> bool:
    """Return whether a vocabulary holds text; other ids are numbers, booleans or times.

    Examples
    --------
    >>> is_text_ids(np.array(["a"], dtype=object)), is_text_ids(np.arange(3))
    (True, False)
    """
    return ids.dtype == object or ids.dtype.kind == "T"


MAX_IDS = np.iinfo(np.int32).max
_TEXTS = 1 << 16  # number of texts to build at a time
_TRY_NUMBERED = 1000  # minimum number of rows to look for numbered ids


class Encoded(NamedTuple):
    """Codes into a vocabulary; ``-1`` stands for a missing value."""

    codes: NDArray[np.int32]
    vocabulary: NDArray[Any]


def encode(values: Any, role: str) -> Encoded:
    """Encode a column of ids; the sorted vocabulary does not depend on the row order.

    Text sorts by value if all of it is canonical integers ("0", "1", ... "10"), else by code point.
    Missing values and empty text become code ``-1``; floats that are all whole numbers become
    integers.

    Examples
    --------
    >>> encode(["b", "a", "", "b"], "worker")
    Encoded(codes=array([ 1,  0, -1,  1], dtype=int32), vocabulary=array(['a', 'b'], dtype=object))
    """
    import pyarrow as pa

    if isinstance(values, Encoded):
        return values
    array = as_arrow(values, role, ids=True)
    if pa.types.is_integer(array.type) and 0 < len(array) <= MAX_IDS and not array.null_count:
        return Encoded(*dense_codes(array.to_numpy()))
    column = IdColumn(role)
    for chunk in chunks_of(array):
        column.add(chunk)
    return column.finish()


class IdColumn:
    """Collector of the ids of one column, which takes chunks and encodes them.

    Numbered text (see :mod:`wisecrowd.core.ids.numbered_ids`) is kept as integers, and text with
    few distinct values as codes, so that the text of a file is never in memory as a whole.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self._ways: list[_Numbered | _Repeated | _Plain] = [_Numbered(), _Repeated(), _Plain(role)]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, chunk: Any) -> None:
        """Append an Arrow array."""
        import pyarrow as pa

        if len(chunk) == 0:
            return
        if pa.types.is_nested(chunk.type):
            raise DataError(
                f"The {self.role} column holds lists or records, first in row "
                f"{self._size + first_valid_row(chunk) + 1}; give one plain value per annotation."
            )
        if isinstance(chunk.type, pa.BaseExtensionType):
            raise DataError(
                f"The {self.role} column is of type {chunk.type}, which cannot serve as ids; "
                "convert it to text or integers first."
            )
        if is_text_view(chunk.type):
            chunk = chunk.cast(pa.large_string())
        refuse_strange_types(chunk.type, self.role)
        self._size += len(chunk)
        while not self._ways[0].add(chunk):  # the last encoder accepts everything
            former = self._ways.pop(0)
            for part in former.texts():
                self._ways[0].add(part)

    def finish(self) -> Encoded:
        """Return the codes and the vocabulary of all chunks."""
        encoded = self._ways[0].finish() if self._size else Encoded(*_NOTHING)
        if len(encoded.vocabulary) > MAX_IDS:
            raise DataError(
                f"There are {len(encoded.vocabulary)} distinct {self.role} values; at most "
                f"{MAX_IDS} fit."
            )
        return encoded


_NOTHING = (np.empty(0, np.int32), np.empty(0, object))


class _Growing:
    """An integer array that grows at its end.

    With a list of chunks, concatenated at the end, the whole ingest needs 1.25 times the memory
    (benchmarks/speed/ingest.py, 10^7 rows grouped by task).
    """

    def __init__(self) -> None:
        self._data: NDArray[Any] = np.empty(1 << 12, dtype=np.int32)
        self._size = 0

    def extend(self, values: NDArray[Any]) -> None:
        if values.dtype.itemsize > self._data.itemsize:
            self._data = self._data.astype(values.dtype)
        end = self._size + len(values)
        if end > len(self._data):
            # By an eighth: resize() writes zeros, and touching memory costs time.
            self._data.resize(max(end, len(self._data) * 9 // 8), refcheck=False)
        self._data[self._size : end] = values
        self._size = end

    def values(self) -> NDArray[Any]:
        return self._data[: self._size]


class _Numbered:
    """Text stored as numbers, as long as all values have the same text around a number."""

    def __init__(self) -> None:
        self._shape: Shape | None = None
        self._numbers = _Growing()
        self._parts: list[int] = []  # sizes of the chunks
        self._fewest, self._most, self._canonical = 99, 0, True

    def add(self, chunk: Any) -> bool:
        if not is_text(chunk.type):
            return False
        if not self._parts and len(chunk) >= _TRY_NUMBERED:
            self._shape = find_shape(chunk)
        numbers = None if self._shape is None else parse(chunk, self._shape)
        if numbers is None:
            return False
        fewest = min(self._fewest, numbers.fewest_digits)
        most = max(self._most, numbers.most_digits)
        canonical = self._canonical and numbers.canonical
        if fewest < most and not canonical:
            return False  # 7 and 07 would become one number
        self._fewest, self._most, self._canonical = fewest, most, canonical
        self._numbers.extend(numbers.values)
        self._parts.append(len(chunk))
        return True

    def _width(self) -> int | None:
        return self._most if self._most == self._fewest else None

    def texts(self) -> Iterator[Any]:
        if self._shape is not None and self._parts:
            ends = np.cumsum(self._parts)
            for values in np.split(self._numbers.values(), ends[:-1]):
                yield texts_of(values, self._shape, self._width())

    def finish(self) -> Encoded:
        assert self._shape is not None
        codes, distinct = dense_codes(self._numbers.values(), overwrite=True)
        if self._width() is None and self._shape != BARE:  # t10 sorts before t9
            return _sorted_vocabulary(codes, texts_of(distinct, self._shape, None), "")
        vocabulary = empty_texts(len(distinct))
        for start in range(0, len(distinct), _TEXTS):
            block = slice(start, start + _TEXTS)
            vocabulary[block] = _objects(texts_of(distinct[block], self._shape, self._width()))
        return Encoded(codes, vocabulary)


class _Repeated:
    """Repeated text stored as codes into the distinct values seen so far.

    If such text is kept, as in :class:`_Plain`, the whole ingest needs 1.2 times the memory
    (10^7 rows, random ids of 24 characters for tasks and of 12 for workers).
    """

    def __init__(self) -> None:
        self._codes = _Growing()
        self._parts: list[int] = []
        self._code_of: dict[str | None, int] = {}

    def add(self, chunk: Any) -> bool:
        if not is_text(chunk.type):
            return False
        encoded = chunk.dictionary_encode()
        if len(encoded.dictionary) > max(len(chunk) // 8, 1000):
            return False  # nearly all distinct: hashing the whole at once is cheaper
        code_of = self._code_of
        codes = [code_of.setdefault(x, len(code_of)) for x in encoded.dictionary.to_pylist()]
        self._codes.extend(np.array([*codes, -1], dtype=np.int32)[indices_of(encoded)])
        self._parts.append(len(chunk))
        return True

    def texts(self) -> Iterator[Any]:
        import pyarrow as pa

        distinct = pa.array(list(self._code_of), pa.large_string())
        if self._parts:
            ends = np.cumsum(self._parts)
            for codes in np.split(self._codes.values(), ends[:-1]):
                yield distinct.take(pa.array(codes, mask=codes < 0))

    def finish(self) -> Encoded:
        import pyarrow as pa

        distinct = pa.array(list(self._code_of), pa.large_string())
        return _sorted_vocabulary(self._codes.values(), distinct, "")


class _Plain:
    """Values of any type: chunks are kept and encoded at the end."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._chunks: list[Any] = []

    def add(self, chunk: Any) -> bool:
        self._chunks.append(chunk)
        return True

    def texts(self) -> Iterator[Any]:
        yield from self._chunks

    def finish(self) -> Encoded:
        import pyarrow as pa

        types = {chunk.type for chunk in self._chunks}
        chunks = self._chunks if len(types) == 1 else to_one_type(self._chunks, self._role)
        column = pa.chunked_array(chunks)
        self._chunks = chunks = []
        if pa.types.is_integer(column.type) and not column.null_count:
            return Encoded(*dense_codes(column.to_numpy()))
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())  # some pyarrow versions do not encode half floats
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        else:
            column = column.dictionary_encode()  # all chunks share one dictionary already
        codes = np.concatenate(
            [indices_of(chunk) for chunk in column.chunks]
        )  # a copy: recoded below
        distinct = column.chunks[0].dictionary
        if is_text_view(distinct.type):
            distinct = distinct.cast(pa.large_string())
        return _sorted_vocabulary(codes, distinct, self._role)


def _sorted_vocabulary(codes: NDArray[np.int32], distinct: Any, role: str) -> Encoded:
    """Return codes into the sorted vocabulary of the values in use; the input is overwritten."""
    used = np.zeros(len(distinct) + 1, dtype=bool)  # the last entry is for code -1
    used[codes] = True
    if is_text(distinct.type):
        numbers = None
        missing = _blank(distinct)
        order = _text_order(distinct)
    else:
        numbers, missing = _plain_numbers(distinct, role)
        order = np.argsort(numbers, kind="stable")
    order = order[(used[:-1] & ~missing)[order]]  # an unused category is not an id
    code_of = np.full(len(distinct) + 1, -1, dtype=np.int32)
    code_of[order] = np.arange(len(order), dtype=np.int32)
    if numbers is None:
        return Encoded(recode(codes, code_of), text_vocabulary(distinct.take(order)))
    vocabulary = numbers[order]
    if len(order) > 1 and bool(np.any(vocabulary[1:] == vocabulary[:-1])):
        vocabulary, code_of = _merge_equal(vocabulary, code_of)  # categories such as 1 and 1.0
    return Encoded(recode(codes, code_of), vocabulary)


def _merge_equal(
    vocabulary: NDArray[Any], code_of: NDArray[np.int32]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    is_first = np.append(True, vocabulary[1:] != vocabulary[:-1])
    merged = np.append(np.cumsum(is_first) - 1, -1).astype(np.int32)
    return vocabulary[is_first], merged[code_of]


def _plain_numbers(distinct: Any, role: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    import pyarrow as pa

    missing = np.asarray(distinct.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if missing.all():  # includes the type null, which has no value to fill in
        return np.zeros(len(distinct), dtype=np.int64), missing
    numbers = distinct.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(distinct.type):
        numbers = np.where(missing, False, numbers).astype(bool)
    elif missing.any():
        numbers = distinct.fill_null(distinct.drop_null()[0]).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(distinct.type):
        missing = missing | np.isnan(numbers)
        numbers = numbers.astype(np.float64)  # 2^53 is infinite in half precision
        if np.isinf(numbers).any():
            raise DataError(f"The {role} values contain infinity; ids must be finite.")
        whole = numbers[~missing]
        if np.abs(whole).max(initial=0) >= 2**53:
            raise DataError(
                f"The {role} values are floats of 2^53 and more, where neighbouring integers are "
                "the same; give them as integers or as text."
            )
        if np.all(whole == np.round(whole)):
            numbers = np.where(missing, 0, numbers).astype(np.int64)  # 1.0 was 1
    elif pa.types.is_timestamp(distinct.type) or pa.types.is_duration(distinct.type):
        numbers = _microseconds(numbers, role)
    return numbers, missing


def _microseconds(times: NDArray[Any], role: str) -> NDArray[Any]:
    """Return times in microseconds, the finest unit of Python's times."""
    kind = "datetime64" if times.dtype.kind == "M" else "timedelta64"
    try:
        coarse = times.astype(f"{kind}[us]")
        # Compared in the unit of the input: a time too far for microseconds wraps around,
        exact = bool((coarse.astype(times.dtype) == times)[~np.isnat(times)].all())
    except OverflowError:  # or is an error, from NumPy 2.5 on
        exact = False
    if not exact:
        raise DataError(
            f"The {role} values are times of less than a microsecond, or too far away to count in "
            "microseconds; convert them to text."
        )
    return coarse


def _objects(texts: Any) -> NDArray[Any]:
    return np.asarray(texts.to_numpy(zero_copy_only=False), dtype=object)


def _blank(distinct: Any) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    blank = pc.equal(pc.utf8_trim_whitespace(distinct), "")
    return np.asarray(blank.fill_null(True).to_numpy(zero_copy_only=False), dtype=bool)


def _text_order(distinct: Any) -> NDArray[np.int64]:
    """Sort text by value if all of it is canonical integers, else by code point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sample = [text for text in distinct[:100].to_pylist() if text]
    if all(text.removeprefix("-").isdigit() for text in sample):  # a failing cast is slow
        try:
            numbers = pc.cast(distinct, pa.int64())
            if pc.all(pc.equal(pc.cast(numbers, distinct.type), distinct)).as_py() is not False:
                return np.asarray(np.argsort(numbers.to_numpy(zero_copy_only=False), kind="stable"))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # not integers: the ordinary case
    return np.asarray(pc.sort_indices(distinct).to_numpy(), dtype=np.int64)


def lookup(values: Any, vocabulary: NDArray[Any]) -> NDArray[np.int32]:
    """Return the code of each value in ``vocabulary``, ``-1`` where it is unknown.

    Examples
    --------
    >>> lookup(["b", "x"], np.array(["a", "b"], dtype=object)).tolist()
    [1, -1]
    """
    if values is vocabulary:
        return np.arange(len(vocabulary), dtype=np.int32)
    position = {value: code for code, value in enumerate(vocabulary.tolist())}
    asked = to_numpy(values).tolist() if not isinstance(values, np.ndarray) else values.tolist()
    kinds = {kind_of(x) for x in vocabulary[:1].tolist()}
    found = [
        # 1 == True == 1.0 for Python: the types must agree as well.
        position.get(x, -1) if not kinds or kind_of(x) in kinds else -1
        for x in asked
    ]
    return np.array(found, dtype=np.int32)
