"""A manifest beside every output: what made it, from which input, with which parameters."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from wisecrowd._version import __version__
from wisecrowd.core.exceptions import DataError
from wisecrowd.storage.atomic import atomic_write


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is needed to make an output again.

    Parameters
    ----------
    method : str or None
        Name of the method.
    parameters : dict
        Its parameters, as plain JSON values; `describe` makes them so.
    seed : int or None
        The seed of the random state.
    inputs : dict
        Path of each input file, as given, and the SHA-256 of its bytes.
    command : list of str
        The command line, if there was one.
    created : str
        Time of writing, ISO 8601 in UTC.
    wisecrowd, python, numpy : str
        Versions.

    Examples
    --------
    >>> manifest = Manifest.describe(method="dawid-skene", parameters={"tol": np.float64(1e-6)})
    >>> manifest.parameters
    {'tol': 1e-06}
    """

    method: str | None = None
    parameters: dict[str, object] = field(default_factory=dict)
    seed: int | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    wisecrowd: str = __version__
    python: str = field(default_factory=platform.python_version)
    numpy: str = np.__version__

    @classmethod
    def describe(
        cls,
        *,
        method: str | None = None,
        parameters: Mapping[str, object] | None = None,
        seed: int | None = None,
        inputs: Iterable[str | os.PathLike[str]] = (),
        command: Sequence[str] = (),
    ) -> Manifest:
        """Make a manifest from live objects: inputs are hashed, parameters turned into JSON.

        Parameters
        ----------
        method, seed, command
            As in the class.
        parameters : mapping, optional
            Any values; what JSON does not know is written as its ``repr``.
        inputs : iterable of paths
            Files to hash; leave standard input out, it is gone once it has been read.
        """
        return cls(
            method=method,
            parameters={name: _plain(value) for name, value in (parameters or {}).items()},
            seed=seed,
            inputs={os.fspath(path): file_sha256(path) for path in inputs},
            command=list(command),
        )


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal, read in pieces."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            f"Cannot read {os.fspath(path)}: {error.strerror}; check the path and its permissions."
        ) from error


def manifest_path(output: str | os.PathLike[str]) -> Path:
    """Return the place of an output's manifest: its own name and ``.manifest.json``."""
    output = Path(output)
    return output.with_name(output.name + ".manifest.json")


def write_manifest(output: str | os.PathLike[str], manifest: Manifest) -> Path | None:
    """Write the manifest beside an output file or directory.

    Returns
    -------
    Path or None
        Where it was written; None for a device or a pipe, which has no place beside it.
    """
    output = Path(output)
    if output.exists() and not (output.is_file() or output.is_dir()):
        return None
    path = manifest_path(output)
    with atomic_write(path) as file:
        json.dump(asdict(manifest), file, indent=2, allow_nan=False)
        file.write("\n")
    return path


def read_manifest(output: str | os.PathLike[str]) -> Manifest:
    """Read the manifest beside an output back.

    Raises
    ------
    DataError
        If there is none, or it is damaged.
    """
    path = manifest_path(output)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            f"Cannot read the manifest {path}: {error.strerror}; is it beside its output?"
        ) from error
    except ValueError as error:
        raise DataError(
            f"The manifest {path} is damaged ({error}); make the output again."
        ) from error
    known = {f.name for f in fields(Manifest)}
    if not isinstance(values, dict) or values.keys() != known:
        raise DataError(
            f"The manifest {path} does not have the fields {', '.join(sorted(known))}; "
            f"make the output again."
        )
    return Manifest(**values)


def _plain(value: object) -> object:
    """Return the nearest JSON value; a manifest informs, so anything else becomes its repr."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return repr(value)
