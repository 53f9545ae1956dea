"""Output of results: to files, written atomically with manifests, or to standard output.

An output replaces what wisecrowd wrote, and with ``--overwrite`` any other file.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.cli.terminal import Notes, escape_steering, forget_output, harmless, harmless_lines
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.plain_values import PlainRows, plain
from wisecrowd.io.formats import SUFFIXES
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import write_table
from wisecrowd.storage.atomic import (
    atomic_write,
    check_replaceable,
    clear_write_errors,
    descriptor_of,
    is_stream,
    together,
    when_complete,
)
from wisecrowd.storage.manifest import (
    Manifest,
    is_manifest,
    is_own_output,
    manifest_path,
    write_manifest,
)

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes

OwnEntry = Callable[[Path], bool]
_OTHERWISE = "give the output another name, or add --overwrite to replace it"


def never_own(entry: Path) -> bool:
    """Return False: without a manifest, no entry of a folder is known to be ours."""
    return False


def check_replacing(output: str, overwrite: bool, is_own: OwnEntry | None = None) -> None:
    """Refuse an output that would replace what wisecrowd did not write.

    Parameters
    ----------
    output : str
    overwrite : bool
        Whether files that are not ours may be replaced. A folder with entries that are not ours is
        never replaced.
    is_own : callable, optional
        Tells of an entry of a folder, or of a file that has no manifest, whether it is ours.
    """
    place, beside = Path(output), manifest_path(output)
    if is_stream(output):
        return
    if beside.exists() and not is_manifest(beside) and not overwrite:
        raise ParameterError(
            f"{beside} exists and is not a manifest of wisecrowd, which {output} would have there; "
            f"{_OTHERWISE}."
        )
    if not place.exists() or is_own_output(output):
        return
    if place.is_dir():
        if is_own is not None:
            check_replaceable(place, is_own)
            if any(place.iterdir()) and beside.exists() and not overwrite:
                raise ParameterError(_changed(output))
        return  # a file cannot take its place
    if overwrite or (is_own is not None and is_own(place)):
        return
    if beside.exists():
        raise ParameterError(_changed(output))
    raise ParameterError(f"{output} exists and was not written by wisecrowd; {_OTHERWISE}.")


def _changed(output: str) -> str:
    return (
        f"{output} is not as its manifest says: it was changed, or the command that wrote it was "
        f"killed; {_OTHERWISE}."
    )


def note_written(notes: Notes, output: str | os.PathLike[str], sentence: str) -> None:
    """Note, once it is in place, that an output was written and what it replaced.

    Call it before the output takes its place.
    """
    place, replaced = Path(output), ""
    if (
        not is_stream(place)
        and place.exists()
        and not (place.is_dir() and not any(place.iterdir()))
    ):
        own = "its earlier version" if is_own_output(place) else "one that wisecrowd did not write"
        replaced = f"; it replaces {own}"
    when_complete(lambda: notes(f"{sentence}{replaced}"))


Table = Mapping[str, NDArray[Any]]
_STDOUT = 1
_DIGITS = 6  # significant digits of an estimate in csv; other formats keep all digits
_IDS = frozenset({"task", "worker", "label"})  # may be fractional, but are not estimates


def check_outputs(
    tables: Iterable[str | None],
    inputs: Iterable[str],
    folder: str | None = None,
    others: Iterable[str] = (),
    *,
    overwrite: bool = False,
    own: Mapping[str, OwnEntry] | None = None,
) -> None:
    """Refuse, before any computation, outputs that cannot be written or would overwrite an input.

    This includes their manifests. The suffix of a table must be that of a known format; ``folder``
    and ``others`` may have any name. What wisecrowd did not write is replaced only with
    ``overwrite``; ``own`` tells it of outputs whose content shows it without a manifest.
    """
    taken = {os.path.realpath(path): path for path in inputs if path != "-"}
    files = [table for table in tables if table is not None and not is_standard(table)]
    if folder is not None and (is_standard(folder) or is_stream(folder)):
        raise ParameterError(f"{folder} cannot hold a folder; give the name of one.")
    for output in (*files, *([folder] if folder is not None else []), *others):
        _check_not_here(output)
        beside = [] if is_stream(output) else [str(manifest_path(output))]
        for written in (output, *beside):
            place = os.path.realpath(written)
            if place in taken:
                raise ParameterError(
                    f"{written} would overwrite {taken[place]}; give the output another name."
                )
            taken[place] = output
        if not is_stream(output):
            _check_place(output)
            is_own = (own or {}).get(output, never_own if output == folder else None)
            check_replacing(output, overwrite, is_own)
    for output in files:
        _check_format(output)


def _check_not_here(output: str) -> None:
    """Refuse the current folder, which a new one would replace, and those that hold it."""
    if Path.cwd().is_relative_to(os.path.realpath(output)):
        raise ParameterError(f"{output} is the current folder, or holds it; give another name.")


def _check_place(output: str) -> None:
    """Refuse a file in a directory that does not exist; links are followed."""
    target = Path(os.path.realpath(output))
    with clear_write_errors(output):
        if target.is_symlink():  # a loop of links
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISDIR(target.parent.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def _check_format(output: str) -> None:
    if not is_stream(output) and Source(Path(output)).suffix not in SUFFIXES:
        raise ParameterError(
            f"The format of {output} cannot be told from its name; end it in .csv, .tsv, .jsonl or "
            ".parquet, or in .json where there is --json."
        )


def is_standard(output: str | None) -> bool:
    """Return whether an output means standard output."""
    return output is None or output == "-" or descriptor_of(output) == _STDOUT


def split_output(output: str | None, as_json: bool) -> tuple[str | None, str | None]:
    """Return the outputs of the table and of the JSON; None is standard output.

    Examples
    --------
    >>> split_output("a.json", as_json=True), split_output("a.csv", as_json=True)
    ((None, 'a.json'), ('a.csv', None))
    """
    if as_json and output is not None and output.lower().endswith(".json"):
        return None, output
    return None if is_standard(output) else output, None


def write_result(
    table: Table,
    output: str | None,
    manifest: Manifest,
    notes: Notes,
    *,
    raw: bool = False,
    estimates: bool = True,
) -> None:
    """Write a table to a file, with its manifest, or as csv to standard output.

    With ``raw`` the cells of csv are unchanged, even if they look like formulas. The numbers in
    ``estimates`` have six significant digits in csv and tsv.
    """
    if is_standard(output):
        print_csv(rounded_estimates(table) if estimates else table, raw=raw)
        return
    assert output is not None
    # A device or a pipe has no suffix that determines a format.
    kind = "csv" if is_stream(output) else "auto"
    form = SUFFIXES.get(Source(Path(output)).suffix)
    if estimates and (kind == "csv" or form in ("csv", "tsv")):
        table = rounded_estimates(table)
    with together():
        write_table(output, table, kind, neutralise_formulas=not raw)
        write_manifest(output, manifest)
        n_rows = len(next(iter(table.values())))
        note_written(notes, output, f"wrote {output} ({n_rows} rows)")


def rounded_estimates(table: Table) -> Table:
    """Round the fractional columns of a table, except ids, to six significant digits.

    The remaining digits of an estimate are noise and differ between processors. Numbers below one
    stay below one, so no probability is rounded up to 1.

    Examples
    --------
    >>> rounded_estimates({"confidence": np.array([0.92046142, 0.99999998, 1.0])})["confidence"]
    array([0.920461, 0.999999, 1.      ])
    """
    return {
        name: _rounded(values) if values.dtype.kind == "f" and name not in _IDS else values
        for name, values in table.items()
    }


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.abs(values)
    known = np.isfinite(size) & (size > 1e-16)  # powers of ten up to 1e22 are exact
    exponent = np.floor(np.log10(np.where(known, size, 1.0)))
    scale = 10.0 ** np.clip(_DIGITS - 1 - exponent, 0, None)
    rounded = np.where(known, np.round(values * scale) / scale, values)
    return np.where((values < 1) & (rounded >= 1), 1 - 10.0**-_DIGITS, rounded)


def print_csv(table: Table, *, raw: bool = False) -> None:
    """Write a table to standard output as csv.

    On a terminal, control characters are shown as their codes; a pipe gets the unchanged data.
    """
    if sys.stdout.isatty():
        table = {harmless(name): _harmless_cells(values) for name, values in table.items()}
    with _explained():
        write_table("-", table, neutralise_formulas=not raw)


def _harmless_cells(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "OUT":
        return values
    cells = np.empty(len(values), dtype=object)
    cells[:] = [harmless(str(value)) for value in values.tolist()]
    return cells


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    print_text(json_text(document))


def give_json(
    document: Callable[[], Mapping[str, Any]], output: str | None, manifest: Manifest, notes: Notes
) -> None:
    """Write one JSON object to a file, with its manifest, or to standard output.

    The object is created after all other outputs are written, so that its notes name them. Its file
    gets its final name together with theirs.
    """
    if output is None:
        when_complete(lambda: print_json(document()))
        return
    with together():
        with atomic_write(output) as file:
            file.write(json_text(document()))
        write_manifest(output, manifest)
        note_written(notes, output, f"wrote {output}")


def json_text(document: Mapping[str, Any]) -> str:
    """Return a document as one line of JSON; NaN, which JSON does not have, becomes null.

    Characters that control a terminal are written as equivalent JSON escapes.
    """
    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False)
    # A surrogate cannot be encoded as UTF-8, but as an escape.
    return escape_steering(text).encode("utf-8", "backslashreplace").decode() + "\n"


def print_text(text: str) -> None:
    """Write text to standard output immediately, always as UTF-8.

    On a terminal, control characters other than line ends have no effect. A pipe gets the unchanged
    data.
    """
    if sys.stdout.isatty():
        text = harmless_lines(text)
    with _explained():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()


@contextmanager
def _explained() -> Iterator[None]:
    """Report a full disk in the same words as for a file; ignore a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_output()
        with clear_write_errors("standard output"):
            raise error


def rows_of(table: Table) -> PlainRows:
    """Return a table as one mapping per row, for JSON; NaN becomes None."""
    columns = [_plain_column(values) for values in table.values()]
    return PlainRows(dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True))


def _plain_column(values: NDArray[Any]) -> list[Any]:
    column: list[Any] = values.tolist()
    if values.ndim > 1 or values.dtype.kind not in "biufU":
        return [plain(value) for value in column]
    if values.dtype.kind == "f":
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            column[row] = None
    return column
