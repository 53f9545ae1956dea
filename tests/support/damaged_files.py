"""Model files, damaged and forged: each must be refused by an error of ours, or be as good as new.

Damage is what disks and networks do: flipped bits, lost ends, lost or doubled pieces, edited text.
A forger also makes every digest fit again, so that what is read is what the parsers get to see.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.storage.manifest import file_sha256
from wisecrowd.storage.models import index_digest
from wisecrowd.storage.saved_methods import _take_apart, load
from wisecrowd.storage.state_codec import StateEncoder

INDEX = "model.json"
_HEAD = 256  # bytes in which headers are
_DIGITS = re.compile(rb"\d+")
_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 3, 2**31, 10**18, 1e308, float("nan"), "", "x", "../x", [], [[]], {}, [-1],
    [10**9, 10**9], "<f8", "|O", "<U999999999", {"$type": "array"}, {"$type": "ids"},
    {"$type": "csr"}, {"$method": "dawid-skene"}, {"$prior": "History"}, "0" * 64,
)  # fmt: skip
_NUMBERS = (b"0", b"1", b"99", b"4294967296", b"999999999999", b"9223372036854775807")


@dataclass
class Outcomes:
    """What became of the files.

    Attributes
    ----------
    refused, equal : int
        Refused with an error of ours; read as the very model that was saved.
    others : list of str
        Mutations after which another model was read.
    crashes : list of str
        Errors that are not ours: the mutation, and what was raised.
    """

    refused: int = 0
    equal: int = 0
    others: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def changed(self) -> int:
        """How many were read as another model."""
        return len(self.others)

    @property
    def total(self) -> int:
        """How many files were read."""
        return self.refused + self.equal + self.changed + len(self.crashes)


def fuzz_model(
    folder: Path, n: int, seed: int = 0, *, forge: bool = False, use: Any = None
) -> Outcomes:
    """Damage a saved model in ``n`` ways, one at a time, and read it each time.

    Parameters
    ----------
    folder : Path
        A saved method; it is as it was afterwards.
    n : int
    seed : int
    forge : bool
        Let every digest fit again.
    use : callable, optional
        Called with what was read; its errors count as if they were of reading.
    """
    rng = random.Random(seed)
    original = fingerprint(load(folder))
    contents = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    found = Outcomes()
    for _ in range(n):
        name = rng.choice([INDEX, *contents])
        kind, damaged = mutate(contents[name], name, rng)
        (folder / name).write_bytes(damaged)
        if forge:
            seal(folder)
        _judge(found, f"{name}: {kind}", lambda: load(folder), original, use)
        for changed in {name, INDEX} if forge else {name}:
            (folder / changed).write_bytes(contents[changed])
    return found


def fuzz_file(path: Path, n: int, read: Callable[[], str], seed: int = 0) -> Outcomes:
    """Damage one file in ``n`` ways and read it each time.

    Parameters
    ----------
    path : Path
        As it was afterwards.
    read : callable
        Returns text that tells whether what was read is what was written.
    """
    rng = random.Random(seed)
    whole, original = path.read_bytes(), read()
    found = Outcomes()
    for _ in range(n):
        kind, damaged = mutate(whole, path.name, rng)
        path.write_bytes(damaged)
        _judge(found, kind, read, original, None)
    path.write_bytes(whole)
    return found


def _judge(found: Outcomes, what: str, read: Callable[[], Any], original: str, use: Any) -> None:
    found.kinds[what.split(": ")[-1]] += 1
    try:
        model = read()
        same = (model if isinstance(model, str) else fingerprint(model)) == original
        if use is not None and not same:
            use(model)
    except WisecrowdError:
        found.refused += 1
    except Exception as error:
        found.crashes.append(f"{what}: {type(error).__name__}: {str(error)[:200]}")
    else:
        found.equal += same
        found.others += [] if same else [what]


def fingerprint(method: Any) -> str:
    """Return a digest of everything that a method was saved with."""
    name, parameters, learned = _take_apart(method)
    encoder = StateEncoder()
    # In one order: JSON promises none, and what a model has is the same in any.
    state = dict(sorted(learned.items()))
    encoded = encoder.encode([sorted(parameters.items()), state], "state")
    digest = hashlib.sha256(json.dumps([name, encoded], sort_keys=True).encode())
    for key in sorted(encoder.arrays):
        digest.update(np.ascontiguousarray(encoder.arrays[key]).tobytes())
    for content in method._network_files().values() if hasattr(method, "_network_files") else ():
        digest.update(content)
    return digest.hexdigest()


def seal(folder: Path) -> None:
    """Make the digests of a model fit its files, where the index can still be read."""
    file = folder / INDEX
    try:
        index = json.loads(file.read_bytes())
        for name in index["sha256"]:
            part = folder / (name if name.endswith(".safetensors") else f"{name}.npy")
            if part.is_file():
                index["sha256"][name] = file_sha256(part)
        index["digest"] = index_digest(index)
        file.write_text(json.dumps(index))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        return


# --------------------------------------------------------------------------------------- mutations


def mutate(content: bytes, name: str, rng: random.Random) -> tuple[str, bytes]:
    """Return a kind of damage and the damaged content of a file."""
    kinds: list[Callable[[bytes, random.Random], bytes]] = [
        flip_bits, cut_short, lose_piece, double_piece, overwrite, change_number,
    ]  # fmt: skip
    if name.endswith(".json"):
        kinds += 4 * [edit_json]
    if name.endswith(".safetensors"):
        kinds += [edit_tensor_header, edit_tensor_header, claim_header_size]
    kind = rng.choice(kinds)
    return kind.__name__, kind(content, rng)


def _place(content: bytes, rng: random.Random) -> int:
    end = min(_HEAD, len(content)) if rng.random() < 0.5 else len(content)
    return rng.randrange(max(end, 1))


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    """Flip one to eight bits."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[_place(content, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_short(content: bytes, rng: random.Random) -> bytes:
    """Lose the end."""
    return content[: _place(content, rng)]


def lose_piece(content: bytes, rng: random.Random) -> bytes:
    """Lose something in the middle."""
    start = _place(content, rng)
    return content[:start] + content[start + rng.randrange(1, 64) :]


def double_piece(content: bytes, rng: random.Random) -> bytes:
    """Have something twice."""
    start = _place(content, rng)
    end = start + rng.randrange(1, 64)
    return content[:end] + content[start:end] + content[end:]


def overwrite(content: bytes, rng: random.Random) -> bytes:
    """Replace a piece by zeros or noise."""
    start, size = _place(content, rng), rng.randrange(1, 64)
    piece = bytes(size) if rng.random() < 0.5 else rng.randbytes(size)
    return content[:start] + piece + content[start + size :]


def change_number(content: bytes, rng: random.Random) -> bytes:
    """Replace a number that stands as text, such as a shape in a header."""
    found = list(_DIGITS.finditer(content[: 16 * _HEAD]))
    if not found:
        return content[:-1]
    one = rng.choice(found)
    return content[: one.start()] + rng.choice(_NUMBERS) + content[one.end() :]


def edit_json(content: bytes, rng: random.Random) -> bytes:
    """Replace, remove or rename a value somewhere in a document."""
    document = json.loads(content)
    return json.dumps(_edited(document, rng)).encode()


def _edited(document: Any, rng: random.Random) -> Any:
    places = list(_places(document))
    path = rng.choice(places)
    if not path:
        return copy.deepcopy(rng.choice(_ODD))
    changed = copy.deepcopy(document)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    last, how = path[-1], rng.random()
    if how < 0.7:
        parent[last] = copy.deepcopy(rng.choice(_ODD))
    elif how < 0.85:
        del parent[last]
    elif isinstance(parent, dict):
        parent[f"{last}{rng.choice(('', '_', '0', 'x_'))}"] = parent.pop(last)
    else:
        parent.insert(last, copy.deepcopy(rng.choice(parent)))
    return changed


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:50]):
            yield from _places(item, (*path, number))


def edit_tensor_header(content: bytes, rng: random.Random) -> bytes:
    """Edit names, types, shapes or offsets of a safetensors file."""
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(_edited(json.loads(content[8 : 8 + size]), rng)).encode()
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def claim_header_size(content: bytes, rng: random.Random) -> bytes:
    """Let a safetensors file claim another size of its header."""
    size = rng.choice((0, 1, 7, 2**31, 2**40, 2**63, 2**64 - 1, rng.randrange(2**16)))
    return size.to_bytes(8, "little") + content[8:]
