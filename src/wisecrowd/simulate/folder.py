"""A simulated crowd as a folder of files: answers.csv, truth.csv, SOURCE.md."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy.typing as npt

from wisecrowd._version import __version__
from wisecrowd.storage.atomic import atomic_directory

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.simulate.simulator import SimulatedCrowd

_FILES = frozenset({"answers.csv", "truth.csv", "workers.csv", "SOURCE.md"})
SIMULATION_MARK = "- Simulated with wisecrowd"
# Rows turned into text at once.
_BLOCK = 1 << 17


def write(simulated: SimulatedCrowd, folder: str | os.PathLike[str]) -> None:
    """Write the folder layout of a data set: it appears complete or not at all.

    ``answers.csv`` has the columns task, worker, label; ``truth.csv`` task, label;
    ``SOURCE.md`` the settings and the seed.

    Parameters
    ----------
    simulated : SimulatedCrowd
        What to write.
    folder : str or path-like
        Made if it is not there. An earlier simulation is replaced; a folder with other files is
        refused, also one that holds a data set of the same layout.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from wisecrowd import simulate
    >>> target = Path(tempfile.mkdtemp()) / "small"
    >>> write(simulate.crowd(2, 3 * simulate.OneCoinWorkers()), target)
    >>> (target / "truth.csv").read_text().splitlines()[0]
    'task,label'
    """
    labels = simulated.labels
    names = [_cell(class_id) for class_id in labels.classes.tolist()]
    with atomic_directory(folder, is_own_entry=is_simulated) as place:
        with _new_text_file(place / "answers.csv") as file:
            file.write("task,worker,label\n")
            for start in range(0, labels.n_annotations, _BLOCK):
                block = slice(start, start + _BLOCK)
                codes = (labels.task[block], labels.worker[block], labels.label[block])
                file.writelines(_rows("%d,%d,%s\n", codes, names))
        with _new_text_file(place / "truth.csv") as file:
            file.write("task,label\n")
            file.writelines(_rows("%d,%s\n", (labels.tasks, simulated.truth_codes), names))
        with _new_text_file(place / "SOURCE.md") as file:
            file.write(_source(simulated, Path(folder).name))


def is_simulated(entry: Path) -> bool:
    """Tell whether an entry is of a simulation: real data sets have files of the same names."""
    if entry.name not in _FILES or not entry.is_file():
        return False
    try:
        source = entry.with_name("SOURCE.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return SIMULATION_MARK in source


def _new_text_file(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def _cell(value: object) -> str:
    """Write one csv cell, quoted only where it must be."""
    text = str(value)
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _rows(template: str, columns: tuple[npt.NDArray[Any], ...], names: list[str]) -> Iterable[str]:
    *ids, codes = (column.tolist() for column in columns)
    return map(template.__mod__, zip(*ids, map(names.__getitem__, codes), strict=True))


def _source(simulated: SimulatedCrowd, name: str) -> str:
    labels = simulated.labels
    per_task = labels.n_annotations / labels.n_tasks
    lines = [
        f"# {name}",
        "",
        f"{SIMULATION_MARK} {__version__}",
        *(f"- {setting}: {value}" for setting, value in simulated.settings.items()),
        f"- N tasks: {labels.n_tasks}; workers: {labels.n_workers}; "
        f"classes: {labels.n_classes}; labels: {labels.n_annotations}; "
        f"labels/task: {per_task:.3f}",
        f"- Mean over workers of the true accuracy: {simulated.worker_accuracy.mean():.4f}",
        "",
    ]
    return "\n".join(lines)
