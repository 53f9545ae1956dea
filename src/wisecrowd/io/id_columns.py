"""Columns of ids that are read piece by piece: one type, no gaps, hashes and growing codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import indices_of, is_text, is_text_view, refuse_strange_types
from wisecrowd.core.exceptions import DataError
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.id_hash import Hashes
from wisecrowd.packs.summary import INTEGER, TEXT

_TAGS = {TEXT: ord("s"), INTEGER: ord("i")}
_FEW = 1000  # distinct values that are coded one by one
_EXACT = 2**53  # floats below this are exact integers


class PlainIds:
    """Brings the pieces of an id column to one type: text or 64-bit integers.

    Whole floats are integers, as in a table that is read at once. A column that is text in one file
    and integers in another is refused, because 1 and "1" are different ids.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self.type: str | None = None
        self._first = ""

    def take(self, piece: Any, source: str) -> Any:
        """Return a pyarrow array as large_string or int64; missing values stay missing."""
        import pyarrow as pa

        if pa.types.is_nested(piece.type):
            raise DataError(
                f"The {self.role} column of {source} holds lists or records; give one plain value "
                "per annotation."
            )
        refuse_strange_types(piece.type, self.role)
        if pa.types.is_dictionary(piece.type):
            piece = piece.dictionary_decode()
        if is_text(piece.type) or is_text_view(piece.type):
            found, ids = TEXT, piece.cast(pa.large_string())
        else:
            found, ids = INTEGER, self._integers(piece, source)
        if self.type is None:
            self.type, self._first = found, source
        if found != self.type:
            raise DataError(
                f"The {self.role} ids are {self.type} in {self._first} and {found} in {source}; "
                "convert them to one type."
            )
        return ids

    def _integers(self, piece: Any, source: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_floating(piece.type):
            piece = piece.cast(pa.float64())
            whole = pc.and_(pc.equal(pc.round(piece), piece), pc.less(pc.abs(piece), _EXACT))
            if pc.all(whole).as_py() is False:
                raise self._unusable(f"fractions or floats of 2^53 and more in {source}")
        elif not pa.types.is_integer(piece.type):
            raise self._unusable(f"of type {piece.type} in {source}")
        try:
            return piece.cast(pa.int64())
        except pa.ArrowInvalid:
            raise self._unusable(f"integers of more than 63 bits in {source}") from None

    def _unusable(self, what: str) -> DataError:
        return DataError(f"The {self.role} ids are {what}; convert them to text first.")


def missing_rows(ids: Any) -> NDArray[np.int64]:
    """Return the rows of ids that are missing or empty text."""
    import pyarrow.compute as pc

    if is_text(ids.type):
        if not ids.null_count and pc.min(pc.binary_length(ids)).as_py() != 0:
            return np.empty(0, np.int64)
        missing = pc.equal(ids, "").fill_null(True)
    else:
        if not ids.null_count:
            return np.empty(0, np.int64)
        missing = ids.is_null()
    return np.flatnonzero(missing.to_numpy(zero_copy_only=False)).astype(np.int64)


def hash_ids(ids: Any) -> Hashes:
    """Return the (n,) hashes of a pyarrow array of text or 64-bit integers without gaps."""
    kernels = kernels_for("id_hash", len(ids))
    if is_text(ids.type):
        offsets = np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : ids.offset + len(ids) + 1]
        data = ids.buffers()[2]
        text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        tag = _TAGS[TEXT]
    else:
        numbers = np.ascontiguousarray(ids.to_numpy(zero_copy_only=False), dtype="<i8")
        offsets = np.arange(0, 8 * len(numbers) + 1, 8, dtype=np.int64)
        text, tag = numbers.view(np.uint8), _TAGS[INTEGER]
    found: Hashes = kernels.hash_bytes(text, offsets, tag)
    return found


class GrowingCodes:
    """Codes of values in the order of their appearance; the work per row is Arrow's."""

    def __init__(self, values: list[Any] | None = None) -> None:
        self.code_of: dict[Any, int] = {v: n for n, v in enumerate(values or [])}
        self._known: Any = None  # the same values as an Arrow array

    def add(self, piece: Any) -> NDArray[np.int32]:
        """Return the (n,) codes of a pyarrow array, -1 where it is missing."""
        encoded = piece.dictionary_encode()
        codes = np.append(self._codes_of(encoded.dictionary), np.int32(-1))
        found: NDArray[np.int32] = codes[indices_of(encoded)]
        return found

    def _codes_of(self, distinct: Any) -> NDArray[np.int32]:
        """Return the codes of distinct values; many of them are looked up by Arrow."""
        import pyarrow as pa
        import pyarrow.compute as pc

        code_of = self.code_of
        if len(distinct) < _FEW:
            found = [code_of.setdefault(x, len(code_of)) for x in distinct.to_pylist()]
            return np.array(found, dtype=np.int32)
        if self._known is None or len(self._known) != len(code_of):
            self._known = pa.array(list(code_of), distinct.type)
        place = pc.index_in(distinct, value_set=self._known).fill_null(-1).to_numpy()
        new = np.flatnonzero(place < 0)
        codes: NDArray[np.int32] = place.astype(np.int32)
        if len(new):
            codes[new] = len(code_of) + np.arange(len(new), dtype=np.int32)
            added = distinct.take(pa.array(new))
            code_of.update(zip(added.to_pylist(), codes[new].tolist(), strict=True))
            self._known = pa.concat_arrays([self._known, added])
        return codes
