"""The hash of ids: compiled as specified, and spread over the shards."""

from __future__ import annotations

import numpy as np

from wisecrowd.kernels import id_hash, id_hash_fast


def as_bytes(texts):
    pieces = [text.encode() for text in texts]
    offsets = np.append(0, np.cumsum([len(piece) for piece in pieces])).astype(np.int64)
    return np.frombuffer(b"".join(pieces), np.uint8), offsets


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def mixed(value):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value ^= value >> 33
        value = value * factor % 2**64
    return value ^ (value >> 33)


def test_compiled_as_specified():
    texts = ["", "a", "task-1", "é\n", "x" * 1000]
    found = id_hash.hash_bytes(*as_bytes(texts), ord("s"))
    assert found.tolist() == [mixed(fnv1a(b"s" + text.encode())) for text in texts]
    np.testing.assert_array_equal(id_hash_fast.hash_bytes(*as_bytes(texts), ord("s")), found)
    assert found[1] != id_hash.hash_bytes(*as_bytes(["a"]), ord("i"))[0]


def test_consecutive_ids_spread_evenly():
    found = id_hash.hash_bytes(*as_bytes([f"{i}" for i in range(4000)]), ord("s"))
    counts = np.bincount((found >> np.uint64(60)).astype(int), minlength=16)
    assert counts.min() > 200
    assert counts.max() < 300
