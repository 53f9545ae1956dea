"""Plain ``.npy`` arrays from untrusted files."""

from __future__ import annotations

import math
import os
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
    # A bad header can make NumPy fail in many ways, all of which mean the same to the caller.
    try:
        version = np.lib.format.read_magic(file)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = reader(file, max_header_size=_LONGEST_HEADER)
    except Exception as error:
        raise DataError(str(error).split("\n")[0] or type(error).__name__) from error
    if dtype.hasobject:
        raise DataError("it holds pickled objects")
    start = file.tell()
    there = file.seek(0, os.SEEK_END) - start
    needed = math.prod(shape) * dtype.itemsize
    if any(size < 0 for size in shape) or needed != there:
        raise DataError(f"its header asks for {needed} bytes of data, and there are {there}")
    file.seek(0)
    try:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise DataError(str(error).split("\n")[0] or type(error).__name__) from error
    return array
