"""What an output may replace: what wisecrowd wrote, and with ``--overwrite`` any other file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.storage.atomic import check_replaceable, when_complete
from wisecrowd.storage.manifest import is_manifest, is_own_output, manifest_path
from wisecrowd.storage.streams import is_stream

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
