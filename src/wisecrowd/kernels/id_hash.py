r"""The hash of ids in NumPy: 64-bit FNV-1a of a type tag and the id's bytes, then mixed.

.. math::
    h \leftarrow (h \oplus b) \cdot p \quad\text{for every byte } b

FNV-1a hardly moves the last bytes of an id into the highest bits, which choose the shard. The
finaliser of MurmurHash3 spreads them over all bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

OFFSET, PRIME = 0xCBF29CE484222325, 0x100000001B3
MIX = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
SHIFT = 33

Hashes = NDArray[np.uint64]


def hash_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64], tag: int) -> Hashes:
    """Return the (n,) hashes of the ids ``data[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    data : (n_bytes,) uint8
    offsets : (n + 1,) int64
    tag : int
        A byte for the type of the ids, which is hashed first: 1 and "1" differ.
    """
    prime = np.uint64(PRIME)
    start, size = offsets[:-1], np.diff(offsets)
    with np.errstate(over="ignore"):
        found = np.full(len(size), (np.uint64(OFFSET) ^ np.uint64(tag)) * prime)
        rows = np.flatnonzero(size > 0)
        place = 0
        while len(rows):
            byte = data[start[rows] + place].astype(np.uint64)
            found[rows] = (found[rows] ^ byte) * prime
            place += 1
            rows = rows[size[rows] > place]
        for factor in MIX:
            found ^= found >> np.uint64(SHIFT)
            found *= np.uint64(factor)
        found ^= found >> np.uint64(SHIFT)
    return found
