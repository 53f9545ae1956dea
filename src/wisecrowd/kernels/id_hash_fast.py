"""The hash of :mod:`wisecrowd.kernels.id_hash`, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.compiling import compiled
from wisecrowd.kernels.id_hash import MIX, OFFSET, PRIME, SHIFT, Hashes

__all__ = ["hash_bytes"]

_OFFSET, _PRIME, _SHIFT = np.uint64(OFFSET), np.uint64(PRIME), np.uint64(SHIFT)
_FIRST, _SECOND = np.uint64(MIX[0]), np.uint64(MIX[1])


@compiled
def _hash_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64], tag: np.uint64) -> Hashes:
    found = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(found)):
        h = (_OFFSET ^ tag) * _PRIME
        for place in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[place])) * _PRIME
        h = (h ^ (h >> _SHIFT)) * _FIRST
        h = (h ^ (h >> _SHIFT)) * _SECOND
        found[i] = h ^ (h >> _SHIFT)
    return found


def hash_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64], tag: int) -> Hashes:
    """See :func:`wisecrowd.kernels.id_hash.hash_bytes`."""
    found: Hashes = _hash_bytes(data, offsets, np.uint64(tag))
    return found
