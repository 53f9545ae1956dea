"""Model files: one ``model.json``, one ``.npy`` per array, networks as safetensors; no pickle.

Checkpoints of training are recognised here too, without the libraries that read them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from wisecrowd._version import __version__
from wisecrowd.core.exceptions import DataError
from wisecrowd.storage.arrays import read_array
from wisecrowd.storage.atomic import atomic_directory, clear_write_errors
from wisecrowd.storage.manifest import file_sha256
from wisecrowd.storage.state_codec import StateDecoder, StateEncoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "wisecrowd-model"
FORMAT_VERSION = 1
_INDEX = "model.json"
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_-]+")
_EXTRA_NAME = re.compile(r"[A-Za-z0-9_-]+\.safetensors")


class SavedModel(NamedTuple):
    """What `load_state` returns."""

    kind: str
    state: dict[str, Any]
    files: dict[str, bytes]


def save_state(
    path: str | os.PathLike[str],
    kind: str,
    state: Mapping[str, object],
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model's state to a directory that is complete or not there.

    Parameters
    ----------
    path : str or path-like
        The directory. An older model there is replaced; a directory that holds anything else is
        left alone, with an error.
    kind : str
        What the state belongs to, for example the method's name.
    state : mapping of str to value
        Values are None, bool, int, float, str, NumPy arrays of numbers, text or dates, object
        arrays of ids, SciPy CSR matrices, and lists, tuples and mappings of these. NumPy scalars
        come back as Python's.
    files : mapping of name to bytes, optional
        What else belongs to the model: ``NAME.safetensors``.

    Raises
    ------
    DataError
        If the directory cannot be written.
    ParameterError
        If a value is of another type.

    See Also
    --------
    load_state : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> workers = np.array(["ann", "bob"], dtype=object)
    >>> save_state(folder, "one-coin", {"workers_": workers, "accuracy_": np.array([0.9, 0.6])})
    >>> sorted(entry.name for entry in folder.iterdir())
    ['accuracy_.npy', 'model.json']
    >>> load_state(folder).state["workers_"]
    array(['ann', 'bob'], dtype=object)
    """
    encoder = StateEncoder()
    encoded = {name: encoder.encode(value, name) for name, value in state.items()}
    with (
        atomic_directory(path, is_own_entry=is_model_file) as folder,
        clear_write_errors(path),
    ):
        digests = {}
        for name, array in encoder.arrays.items():
            file = folder / f"{name}.npy"
            np.save(file, array, allow_pickle=False)
            digests[name] = file_sha256(file)
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
            digests[name] = file_sha256(folder / name)
        index = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "wisecrowd": __version__,
            "kind": kind,
            "sha256": digests,
            "state": encoded,
        }
        index["digest"] = index_digest(index)
        (folder / _INDEX).write_text(json.dumps(index, allow_nan=False) + "\n", encoding="utf-8")


def load_state(path: str | os.PathLike[str]) -> SavedModel:
    """Read what `save_state` wrote; nothing in the files is ever run.

    Parameters
    ----------
    path : str or path-like
        The directory.

    Returns
    -------
    SavedModel
        ``kind``, ``state`` and ``files``.

    Raises
    ------
    DataError
        If the directory is not a model, was written by a newer version, or a file in it is
        missing, cut short or changed.
    """
    folder = Path(path)
    index = _read_index(folder)
    try:
        digests = dict(index["sha256"])
        decoder = StateDecoder(lambda name: _read_array(folder, name, digests[name]))
        kind, state = index["kind"], index["state"]
        if not isinstance(kind, str):
            raise TypeError("kind is not text")
        decoded = {name: decoder.decode(value) for name, value in state.items()}
        extra = [name for name in digests if _EXTRA_NAME.fullmatch(name)]
        files = {name: _unchanged(folder / name, digests[name]).read_bytes() for name in extra}
        return SavedModel(kind, decoded, files)
    except DataError as error:
        _refuse(folder, _reason(error), error)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        _refuse(folder, f"{_INDEX} does not describe a model ({_reason(error)})", error)


def _read_index(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise DataError(f"There is no model at {folder}: give the directory it was saved to.")
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    except OSError as error:
        _refuse(folder, f"{_INDEX} cannot be read ({error.strerror})", error)
    except (ValueError, RecursionError) as error:
        _refuse(folder, f"{_INDEX} is cut short or not JSON ({_reason(error)})", error)
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        _refuse(folder, f"{_INDEX} is not that of a wisecrowd model")
    if index.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"The model at {folder} has format version {index.get('format_version')!r}, and "
            f"wisecrowd {__version__} reads version {FORMAT_VERSION}; load it with wisecrowd "
            f"{index.get('wisecrowd')}, which wrote it, or fit it again."
        )
    if index.get("digest") != index_digest(index):
        _refuse(folder, f"{_INDEX} was changed after it was written")
    return index


def index_digest(index: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in ``model.json`` but the digest itself.

    It is computed from the values, so the file may be reformatted.

    Examples
    --------
    >>> index_digest({"kind": "one-coin", "digest": ""}) == index_digest({"kind": "one-coin"})
    True
    """
    rest = {name: value for name, value in index.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _read_array(folder: Path, name: str, digest: str) -> NDArray[Any]:
    if not isinstance(name, str) or not _ARRAY_NAME.fullmatch(name):
        raise DataError(f"array name {name!r} is not allowed")
    file = _unchanged(folder / f"{name}.npy", digest)
    try:
        with file.open("rb") as stream:
            return read_array(stream)
    except (DataError, OSError) as error:
        raise DataError(f"{file.name} is not a plain array ({_reason(error)})") from error


def _unchanged(file: Path, digest: str) -> Path:
    """Return a file that has the digest."""
    if not file.is_file():
        raise DataError(f"{file.name} is missing")
    if file_sha256(file) != digest:
        raise DataError(f"{file.name} is cut short or was changed")
    return file


def is_model_file(entry: Path) -> bool:
    """Return whether a file belongs to the model in its folder, whose index names it."""
    try:
        index = json.loads(entry.with_name(_INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(index, dict) or index.get("format") != FORMAT or not entry.is_file():
        return False
    named = index.get("sha256")
    name = entry.name.removesuffix(".npy")
    return entry.name == _INDEX or (isinstance(named, dict) and name in named)


def _reason(error: BaseException) -> str:
    return f"no field {error}" if isinstance(error, KeyError) else str(error).rstrip(".")


def _refuse(folder: Path, why: str, cause: BaseException | None = None) -> NoReturn:
    raise DataError(f"Cannot load the model at {folder}: {why}; save it again.") from cause


CHECKPOINT = "wisecrowd-checkpoint"  # how the formats of our checkpoints begin
_LONGEST = 1 << 26  # bytes of a header


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a checkpoint that wisecrowd wrote, by the header of safetensors."""
    try:
        with Path(path).open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size <= _LONGEST else {}
        ours = json.loads(header["__metadata__"]["wisecrowd"])
        return str(ours["format"]).startswith(CHECKPOINT)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
