"""Plain ``.npy`` arrays from untrusted files."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_HEADER = 10_000  # bytes; NumPy's own are about a hundred


def read_array(file: IO[bytes]) -> NDArray[Any]:
    """Read an array that :func:`numpy.save` wrote; nothing in it is ever run.

    The header is compared with the size of the file first: it may claim any shape, and NumPy would
    ask for that much memory. Archives (``.npz``) and pickled objects are refused.

    Parameters
    ----------
    file : binary file, seekable

    Raises
    ------
    DataError
        If the file is not a plain array, or is cut short; callers name the file.
    """
    _read_header(file)
    file.seek(0)
    try:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise DataError(str(error).split("\n")[0] or type(error).__name__) from error
    return array


def map_array(path: Path) -> NDArray[Any]:
    """Map an array of a file into memory, as checked as that of :func:`read_array`.

    The array may be changed in memory; the file never is. An empty array is read.
    """
    with path.open("rb") as file:
        shape, fortran, dtype, start = _read_header(file)
        if math.prod(shape) == 0:
            file.seek(0)
            return read_array(file)
    mapped = np.memmap(path, dtype, "c", start, shape, "F" if fortran else "C")
    return mapped.view(np.ndarray)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order, dtype and start of the data, or refuse the file."""
    # A bad header can make NumPy fail in many ways, all of which mean the same to the caller.
    try:
        version = np.lib.format.read_magic(file)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = reader(file, max_header_size=_LONGEST_HEADER)
    except Exception as error:
        raise DataError(str(error).split("\n")[0] or type(error).__name__) from error
    if dtype.hasobject:
        raise DataError("it holds pickled objects")
    start = file.tell()
    there = file.seek(0, os.SEEK_END) - start
    needed = math.prod(shape) * dtype.itemsize
    if any(size < 0 for size in shape) or needed != there:
        raise DataError(f"its header asks for {needed} bytes of data, and there are {there}")
    return shape, fortran, dtype, start
