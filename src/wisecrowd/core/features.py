"""Features of tasks or items, in every accepted form, become checked arrays."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.memory_check import available_memory, readable_bytes
from wisecrowd.core.messages.option_spelling import for_reader

LARGEST_FEATURE = 1e30  # standardised, larger numbers may overflow in single precision
_CHUNK = 1 << 24  # numbers checked at a time, so that the check does not copy the whole array


def is_hugging_face(X: Any) -> bool:
    """Return whether ``X`` is a ``Dataset`` of Hugging Face's library, a table of named columns."""
    return hasattr(X, "column_names") and hasattr(X, "with_format")


def is_dataset(X: Any) -> bool:
    """Return whether ``X`` is read item by item, like a torch Dataset, and is not an array."""
    arrays = ("__array__", "columns", "column_names", "tocsr")
    if isinstance(X, list | tuple | str) or any(hasattr(X, name) for name in arrays):
        return False
    return hasattr(X, "__getitem__") and hasattr(X, "__len__")


def is_mapped(X: Any) -> bool:
    """Return whether ``X`` is an array of a file mapped into memory, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def as_features(
    X: Any, *, n_features: int | None = None, owner: str = "The model", sparse: bool = False,
    mapped: bool = False,
) -> Any:  # fmt: skip
    """Return features as a float array with two or more dimensions, or a dataset unchanged.

    Parameters
    ----------
    X : array-like (n, d) or (n, ...), sparse matrix, dataframe of numbers, or dataset
    n_features : int, optional
        Number of features in the fit.
    owner : str
        Name of the method that expects them, for the message.
    sparse : bool
        Whether sparse features stay sparse (csr); otherwise they become dense if they fit into
        memory.
    mapped : bool
        Whether integers of a mapped file stay as they are, because floats would be a copy of all.

    Examples
    --------
    >>> as_features([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if X is None:
        raise DataError("There are no features: X is None; give an array with one row per task.")
    if is_dataset(X):
        return X
    if is_hugging_face(X):
        raise DataError(
            "X is a Hugging Face data set, whose columns are not all features; read features and "
            "ids with wisecrowd.read_features(X)."
        )
    array = as_numbers(X, mapped)
    if array.ndim < 2:
        raise DataError(
            f"X has {array.ndim} dimension(s), Expected 2D array; Reshape your data: one row per "
            + for_reader(
                "task, X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one task.",
                "task and one column per feature.",
            )
        )
    if array.shape[0] == 0:
        raise DataError(f"Found array with 0 sample(s) (shape={array.shape}): X has no rows.")
    if 0 in array.shape[1:]:
        raise DataError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if n_features is not None and array.shape[1] != n_features:
        raise DataError(
            f"X has {array.shape[1]} features, but {owner} is expecting {n_features} features as "
            "input; give the columns that the fit had."
        )
    require_finite(array)
    return array if sparse or not is_sparse(array) else dense_features(array)


def is_sparse(X: Any) -> bool:
    """Return whether ``X`` is a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsr")


def n_rows_of(X: Any) -> int:
    """Return the number of rows of features, which may be sparse."""
    return int(X.shape[0]) if is_sparse(X) else len(X)


def dense_features(X: Any) -> NDArray[Any]:
    """Return sparse features (n, d) as a dense array, if that takes a quarter of memory at most."""
    size, limit = math.prod(X.shape) * X.dtype.itemsize, available_memory() // 4
    if size > limit:
        raise DataError(
            f"X is sparse and has {X.shape[0]} × {X.shape[1]} numbers, which would take "
            f"{readable_bytes(size)} as a dense array, over the limit of {readable_bytes(limit)}; "
            "reduce its columns, for instance by a truncated SVD, or use the method raykar, which "
            "needs no dense array."
        )
    dense: NDArray[Any] = X.toarray()
    return dense


def as_numbers(X: Any, mapped: bool = False) -> NDArray[Any]:
    """Return an array, or a sparse matrix in the csr format, of floats.

    With ``mapped``, an array of a mapped file keeps its own type of numbers.
    """
    if is_sparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:  # entries of one place count together
            X = X.copy()
            X.sum_duplicates()
        if X.dtype.kind == "c":
            raise DataError(f"Complex data not supported: X has the type {X.dtype}.")
        floats: Any = X if X.dtype.kind == "f" else X.astype(np.float64)
        return cast("NDArray[Any]", floats)
    try:
        array = np.asarray(X)
        if array.dtype.kind == "c":
            raise DataError(f"Complex data not supported: X has the type {array.dtype}.")
        if mapped and array.dtype.kind in "fiub" and is_mapped(array):
            return array
        if array.dtype.kind not in "fiub" or array.dtype == np.float16:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        message = f"X cannot be read as numbers ({error}); encode text and categories first."
        # scikit-learn distinguishes a wrong type of argument from a wrong value.
        raise (TypeError if isinstance(error, TypeError) else DataError)(message) from None
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def require_finite(array: Any, name: str = "Input X", ids: NDArray[Any] | None = None) -> None:
    """Refuse NaN, infinity and numbers beyond single precision, and name their place.

    Parameters
    ----------
    array : (n, ...) array of floats, or csr matrix
    name : str
        What the message calls the features.
    ids : (n,), optional
        Ids of the rows, for the message.
    """
    found = _first_bad(array)
    if found is not None:
        row, column, value = found
        who = "" if ids is None else f", of {ids[row]!r}"
        where = f"in row {row}{who}, column {column} (counted from 0)"
        if np.isfinite(value):
            raise DataError(
                f"{name} contains {value:g} {where}, which is too large for single precision; "
                "rescale the column."
            )
        raise DataError(
            f"{name} contains {'NaN' if np.isnan(value) else 'infinity'} {where}; fill in or "
            "remove such rows."
        )


def _first_bad(array: Any) -> tuple[int, str, float] | None:
    """Return row, column and value of the first number that is not finite or too large."""
    if is_sparse(array):
        bad = np.flatnonzero(_is_bad(array.data))
        if not len(bad):
            return None
        row = int(np.searchsorted(array.indptr, bad[0], side="right")) - 1
        return row, str(array.indices[bad[0]]), float(array.data[bad[0]])
    if array.dtype.kind in "iub":
        return None
    step = max(1, _CHUNK // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        chunk = array[start : start + step]
        wrong = _is_bad(chunk)
        if wrong.any():
            where = np.argwhere(wrong)[0]
            column = ", ".join(map(str, where[1:].tolist()))
            return start + int(where[0]), column, float(chunk[tuple(where)])
    return None


def _is_bad(numbers: Any) -> Any:
    """Return which numbers are NaN, infinite or too large; a copy of each is not made."""
    return ~((numbers <= LARGEST_FEATURE) & (numbers >= -LARGEST_FEATURE))
