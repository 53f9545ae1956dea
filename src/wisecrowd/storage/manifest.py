"""A manifest beside every output: what made it, from which input, with which parameters."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from wisecrowd._version import __version__
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.plain_values import plain
from wisecrowd.storage.atomic import MANIFEST, atomic_write, is_stream, written_at

# Libraries whose version may change the last bits of a result, named where they were in use.
_LIBRARIES = ("scipy", "numba", "pyarrow", "torch")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is needed to make an output again, to the same bits.

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
    output_sha256 : str or None
        The SHA-256 of the output, which tells whether the manifest belongs to it; that of a folder
        is taken over the names and digests of its files. `write_manifest` fills it in.
    created : str
        Time of writing, ISO 8601 in UTC; the environment variable ``SOURCE_DATE_EPOCH`` overrides
        it, so that a rerun can give the same manifest.
    wisecrowd, python, numpy : str
        Versions.
    libraries : dict
        Versions of the other libraries that had been loaded.
    platform : str
        System and processor.
    threads : int or None
        How many threads were allowed, where the method can use several.
    hash_seed : str
        ``PYTHONHASHSEED``, or "random". Results depend on neither of the last two.
    facts : dict
        Further facts of the run, such as checks that were not made; older manifests have none.

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
    output_sha256: str | None = None
    created: str = field(default_factory=lambda: _now().isoformat(timespec="seconds"))
    wisecrowd: str = __version__
    python: str = field(default_factory=platform.python_version)
    numpy: str = np.__version__
    libraries: dict[str, str] = field(default_factory=lambda: _loaded_versions())
    platform: str = field(default_factory=lambda: f"{platform.system()} {platform.machine()}")
    threads: int | None = None
    hash_seed: str = field(default_factory=lambda: os.environ.get("PYTHONHASHSEED") or "random")
    facts: dict[str, object] = field(default_factory=dict)

    @classmethod
    def describe(
        cls,
        *,
        method: str | None = None,
        parameters: Mapping[str, object] | None = None,
        seed: int | None = None,
        inputs: Iterable[str | os.PathLike[str]] = (),
        command: Sequence[str] = (),
        threads: int | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> Manifest:
        """Make a manifest from live objects: inputs are hashed, parameters turned into JSON.

        Parameters
        ----------
        method, seed, command, threads
            As in the class.
        parameters : mapping, optional
            Any values; what JSON does not know is written as its ``repr``.
        inputs : iterable of paths
            Files to hash; leave standard input out, it is gone once it has been read.
        facts : mapping, optional
            Like parameters.
        """
        return cls(
            method=method,
            parameters=plain(parameters or {}, other=repr),
            seed=seed,
            inputs={os.fspath(path): file_sha256(path) for path in inputs},
            command=list(command),
            threads=threads,
            facts=plain(facts or {}, other=repr),
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


def output_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of an output: of a file's bytes, or of a folder's names and digests."""
    place = Path(path)
    if not place.is_dir():
        return file_sha256(place)
    files = sorted(file for file in place.rglob("*") if file.is_file())
    lines = [f"{file_sha256(file)}  {file.relative_to(place).as_posix()}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def manifest_path(output: str | os.PathLike[str]) -> Path:
    """Return the place of an output's manifest: its own name and ``.manifest.json``."""
    output = Path(output)
    return output.with_name(output.name + MANIFEST)


def write_manifest(output: str | os.PathLike[str], manifest: Manifest) -> Path | None:
    """Write the manifest beside an output file or directory.

    Returns
    -------
    Path or None
        Where it was written; None for a device or a pipe, which has no place beside it.
    """
    output = Path(output)
    if is_stream(output):
        return None
    path, content = manifest_path(output), written_at(output)
    if content.exists():
        manifest = replace(manifest, output_sha256=output_sha256(content))
    values = asdict(manifest)
    if not manifest.facts:
        del values["facts"]
    with atomic_write(path) as file:
        json.dump(values, file, indent=2, allow_nan=False)
        file.write("\n")
    return path


def read_manifest(output: str | os.PathLike[str]) -> Manifest:
    """Read the manifest beside an output back.

    Raises
    ------
    DataError
        If there is none, it is damaged, or the output is not the one that it describes.
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
    if not isinstance(values, dict) or {*values, "facts"} != known:
        raise DataError(
            f"The manifest {path} does not have the fields {', '.join(sorted(known))}; "
            f"make the output again."
        )
    manifest = Manifest(**values)
    digest = manifest.output_sha256
    if digest is not None and Path(output).exists() and output_sha256(output) != digest:
        raise DataError(
            f"The manifest {path} does not belong to {os.fspath(output)} as it is now: one of them "
            "was changed, or the command that wrote both was killed in between; make it again."
        )
    return manifest


def is_own_output(output: str | os.PathLike[str]) -> bool:
    """Return whether an output is as wisecrowd wrote it, which its manifest tells."""
    manifest = _manifest_at(manifest_path(output))
    place = Path(output)
    if manifest is None or manifest.output_sha256 is None or not place.exists():
        return False
    return output_sha256(place) == manifest.output_sha256


def is_manifest(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a manifest, whatever output it describes."""
    return _manifest_at(Path(path)) is not None


def _manifest_at(path: Path) -> Manifest | None:
    """Return the manifest in a file, or None if it is anything else."""
    known = {f.name for f in fields(Manifest)}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or {*values, "facts"} != known:
        return None
    return Manifest(**values)


def _now() -> datetime:
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not given.isdecimal():
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (OverflowError, ValueError, OSError):
        raise ParameterError(
            f"The environment variable SOURCE_DATE_EPOCH is {given[:30]}; give seconds since 1970, "
            "or unset it."
        ) from None


def _loaded_versions() -> dict[str, str]:
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _LIBRARIES}
    return {name: str(version) for name, version in loaded.items() if version is not None}
