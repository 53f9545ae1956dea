"""Journal of a fit: the statistics of every finished pass, from which a fit continues."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from wisecrowd.core.exceptions import DataError
from wisecrowd.engines.value_files import read_values, write_values
from wisecrowd.storage.work_folder import clear_files

_ENTRY = "pass-{:05d}"
# Files of a journal: finished passes, the states of shards, and both while they are written.
JOURNAL_FILES = re.compile(r"\.?(pass-\d{5}|state-\d{5}-\d{5})(\.[0-9a-f]{8}\.tmp)?")


class Entry(NamedTuple):
    """A finished pass: the digest of its model, step and parameters, and its statistics."""

    key: str
    stats: Any


class Journal:
    """Statistics of finished passes in a folder.

    A fit that is started again repeats what its driver did and takes the statistics of finished
    passes from here, so that it ends with the same bits as one that was never interrupted.

    Parameters
    ----------
    folder : Path
    resume : bool
        Whether to use the passes of a previous run; otherwise they are deleted.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.folder = folder
        self.n_taken = 0
        self._next = 0
        if not resume:
            clear_files(folder, JOURNAL_FILES)
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def is_empty(self) -> bool:
        """Whether there is no finished pass."""
        return not any(self.folder.glob("pass-*"))

    def next_pass(self) -> int:
        """Return the number of the next pass."""
        self._next += 1
        return self._next

    def find(self, number: int, key: str, package: str) -> Entry | None:
        """Return a finished pass, or None; one with another key means another fit.

        A pass whose file is damaged, as after a power failure, is not finished.
        """
        file = self.folder / _ENTRY.format(number)
        if not file.exists():
            return None
        try:
            entry = read_values(file, package, verify=True)
        except DataError:
            return None
        if not isinstance(entry, Entry) or entry.key != key:
            raise DataError(
                f"{self.folder} belongs to another fit: method, parameters or pack differ; start "
                "without resuming, or choose another folder."
            )
        self.n_taken += 1
        return entry

    def add(self, number: int, key: str, stats: Any) -> None:
        """Keep the statistics of a pass."""
        write_values(self.folder / _ENTRY.format(number), Entry(key, stats))
