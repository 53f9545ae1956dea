"""Model files whose arrays and scalars somebody changed, with digests that fit: all refused.

Predictions hand saved arrays to compiled code without bounds checks, so that loading must refuse an
array that is a row short, and a NaN must not become a silently wrong answer.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from tests.support.damaged_files import INDEX

from wisecrowd.core.exceptions import DataError, WisecrowdError
from wisecrowd.core.saved_attributes import NUMBER, SavedArray, is_optional
from wisecrowd.storage import models
from wisecrowd.storage.arrays import read_array
from wisecrowd.storage.manifest import file_sha256
from wisecrowd.storage.models import index_digest
from wisecrowd.storage.saved_methods import load
from wisecrowd.testing.crowds import example
from wisecrowd.testing.foundation import Make, check, require

_NAN = {"$type": "float", "value": "nan"}
_NESTED = {"$type": "dict", "items": [["a", {"$type": "tuple", "items": [[]]}]]}
_NO_NUMBERS: tuple[Any, ...] = ("x", _NAN, _NESTED)


@check
def check_forged_models(make: Make) -> None:
    """Require that a saved model with one wrong array or scalar is refused with a DataError."""
    fitted = make().fit(example(make))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        fitted.save(path)
        accepted = accepted_forgeries(fitted, path)
    require(not accepted, f"loaded although forged: {'; '.join(accepted)}")


def accepted_forgeries(method: Any, folder: Path) -> list[str]:
    """Return which forgeries of a saved method load, or fail without a clear error.

    Parameters
    ----------
    method : fitted method
    folder : Path
        Where it was saved; as it was afterwards.
    """
    text = (folder / INDEX).read_text(encoding="utf-8")
    with patch.object(models, "_read_array", _reader_of_changes()):
        accepted = _accepted(method, folder, json.loads(text))
    (folder / INDEX).write_text(text, encoding="utf-8")
    return accepted


def _reader_of_changes() -> Callable[[Path, str, str], NDArray[Any]]:
    """Return a reader that reads an array again only if its digest or its size is another.

    Most forgeries change none, and reading is most of the time.
    """
    read, known = models._read_array, dict[tuple[str, str, int], NDArray[Any]]()

    def reader(folder: Path, name: str, digest: str) -> NDArray[Any]:
        key = (name, digest, (folder / f"{name}.npy").stat().st_size)
        if key not in known:
            known[key] = read(folder, name, digest)
        return known[key].copy()

    return reader


def _accepted(method: Any, folder: Path, original: dict[str, Any]) -> list[str]:
    accepted = []
    for forgery in _forgeries(method, original, folder):
        index = forgery.index
        before = {file: file.read_bytes() for file in forgery.arrays}
        for file, array in forgery.arrays.items():
            np.save(file, array, allow_pickle=False)
            index["sha256"][file.stem] = file_sha256(file)
        index["digest"] = index_digest(index)
        (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
        if fault := _refusal(folder):
            accepted.append(f"{forgery.what} ({fault})")
        for file, content in before.items():
            file.write_bytes(content)
    return accepted


def _refusal(folder: Path) -> str:
    """Return what is wrong with how a forged model is refused, or nothing."""
    try:
        load(folder)
    except DataError as error:
        text = str(error)
        clear = text.startswith("Cannot load the m") and text.endswith(".") and "\n" not in text
        # Any other cause is an accident, whose words are Python's.
        meant = isinstance(error.__cause__, WisecrowdError)
        return "" if clear and meant else f"the refusal does not say what is wrong: {text}"
    except Exception as error:  # anything else would be a traceback for the user
        return f"{type(error).__name__}: {error}"
    return "it loads"


@dataclass
class _Forgery:
    """What was changed, the index of the model with the change, and arrays by their files."""

    what: str
    index: dict[str, Any]
    arrays: dict[Path, NDArray[Any]] = field(default_factory=dict)


def _forgeries(method: Any, index: dict[str, Any], folder: Path) -> Iterator[_Forgery]:
    declared = method._saved_attributes()
    for where, encoded in _arrays(index["state"], ()):
        file = folder / f"{encoded['name']}.npy"
        with file.open("rb") as stream:
            array = read_array(stream)
        for what, values in _wrong_arrays(array, declared.get(where[-1])):
            changed = copy.deepcopy(index)
            found = dict(_arrays(changed["state"], ()))[where]
            found["dtype"], found["shape"] = values.dtype.str, list(values.shape)
            yield _Forgery(f"{'.'.join(where)} {what}", changed, {file: values})
    for name, one in declared.items():
        if name in index["state"]:
            yield from _wrong_values(index, name, one, is_optional(one, method))
    for name, value in method.get_params(deep=False).items():
        if isinstance(value, bool | int | float):
            for wrong in _NO_NUMBERS:
                changed = copy.deepcopy(index)
                pairs = changed["state"]["parameters"]["items"]
                next(pair for pair in pairs if pair[0] == name)[1] = wrong
                yield _Forgery(f"{name} = {wrong!r}", changed)


def _wrong_values(index: dict[str, Any], name: str, one: Any, optional: bool) -> Iterator[_Forgery]:
    """Return indices in which something learned is of another type, left out or renamed."""
    changed = copy.deepcopy(index)
    changed["state"]["no_such_" + name] = changed["state"].pop(name)
    yield _Forgery(f"{name} renamed", changed)
    if not optional:
        changed = copy.deepcopy(index)
        del changed["state"][name]
        yield _Forgery(f"{name} left out", changed)
    wrong = [None, *_NO_NUMBERS] if one is NUMBER else [None, -1.5, *_NO_NUMBERS]
    for value in wrong:
        changed = copy.deepcopy(index)
        changed["state"][name] = value
        yield _Forgery(f"{name} = {value!r}", changed)


def _wrong_arrays(array: NDArray[Any], one: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Return an array in forms that its declaration forbids."""
    if not isinstance(one, SavedArray):  # inside a prior or a sparse matrix
        if array.dtype.kind == "f" and array.size:
            yield from ((f"with {value}", _with(array, value)) for value in (np.nan, np.inf))
        return
    for axis, size in enumerate(array.shape):
        if one.axes.split("|")[0].split()[axis] != "*":
            if size:
                yield f"shortened along axis {axis}", np.delete(array, -1, axis=axis)
            first = np.take(array, [0], axis=axis) if size else np.zeros_like(array, shape=1)
            if first.ndim == array.ndim:
                longer = np.concatenate([array, first], axis=axis)
                yield f"lengthened along axis {axis}", longer
    yield "with one axis more", array[None]
    if one.values not in ("id", "label"):
        yield "as text", array.astype(str)
    if array.size:
        yield from ((f"with {value}", _with(array, value)) for value in _wrong_entries(array, one))


def _wrong_entries(array: NDArray[Any], one: SavedArray) -> list[float]:
    """Return values that no array of such a declaration holds."""
    if one.values in ("id", "label", "flag"):
        return []
    if array.dtype.kind != "f":
        return [-2, len(array)] if one.values == "group" else [-2]
    wrong = [np.nan, np.inf]
    if one.values != "log":
        wrong.append(-np.inf)
    return wrong if one.values in ("number", "log") else [*wrong, -1.0]


def _with(array: NDArray[Any], value: float) -> NDArray[Any]:
    changed = array.copy()
    changed.flat[-1] = value
    return changed


def _arrays(value: Any, where: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Return every array of an index with the keys that lead to it, parameters left out."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _arrays(item, (*where, str(position)))
    elif isinstance(value, dict):
        kind = value.get("$type")
        if kind == "array":
            yield where, value
            return
        pairs = value["items"] if kind == "dict" else value.items()
        for key, item in pairs if kind not in ("tuple", "ids") else ():
            if key != "parameters":
                yield from _arrays(item, (*where, str(key)))
