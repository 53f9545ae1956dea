"""Results for whatever comes next: soft labels as an array, a table or a Hugging Face data set."""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import MissingDependencyError, ParameterError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.result import dense_rows
from wisecrowd.io.sources import Source
from wisecrowd.io.writing import write_table
from wisecrowd.storage.atomic import atomic_directory, atomic_write, is_stream, together

ARRAY, TABLES = ".npy", (".parquet", ".pq", ".jsonl", ".ndjson")
_INFO = "dataset_info.json"
_DESCRIPTION = "Soft labels by wisecrowd"  # by which our own data sets are recognised


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """What a method says of every task.

    Attributes
    ----------
    tasks, labels : (n_tasks,)
        Ids and the most probable class of each.
    confidence : (n_tasks,)
        The probability of that class.
    classes : (n_classes,)
    probas : (n_tasks, n_classes) array or sparse
    method : str
        Its command-line name.
    """

    tasks: NDArray[Any]
    labels: NDArray[Any]
    confidence: NDArray[np.float64]
    classes: NDArray[Any]
    probas: Any
    method: str

    @classmethod
    def of(cls, fit: Any) -> SoftLabels:
        """Return those of a fitted method, whether it learned from features or not."""
        if isinstance(fit, SoftLabels):
            return fit
        table = fit.task_columns()  # an error of its own if there was no fit
        name = kebab_case(type(fit).__name__)
        return cls(
            table["task"], table["label"], table["confidence"], fit.classes_, fit.probas_, name
        )

    def dense(self) -> NDArray[np.float64]:
        """Return the probabilities (n_tasks, n_classes) as a plain array, if it fits."""
        require_memory(
            8 * len(self.tasks) * len(self.classes), "The probabilities of all classes would",
            "write labels and confidence only",
        )  # fmt: skip
        return dense_rows(self.probas)


def check_soft_path(path: str | os.PathLike[str]) -> str:
    """Return the kind of file that a path asks for: npy, parquet, jsonl or folder."""
    suffix = Source(Path(path)).suffix
    if suffix == ARRAY:
        return "npy"
    if suffix in TABLES:
        return "parquet" if suffix in TABLES[:2] else "jsonl"
    if suffix or is_stream(path):
        raise ParameterError(
            f"Soft labels cannot be written as {os.fspath(path)}; end the name in .npy, .parquet "
            "or .jsonl, or give a folder without suffix for a Hugging Face data set."
        )
    return "folder"


def ids_path(path: str | os.PathLike[str]) -> Path:
    """Return where the ids of an array go: ``soft.ids.json`` for ``soft.npy``.

    Examples
    --------
    >>> ids_path("out/soft.npy").as_posix()
    'out/soft.ids.json'
    """
    return Path(path).with_suffix(".ids.json")


def write_soft_labels(fit: Any, path: str | os.PathLike[str]) -> list[Path]:
    r"""Write the probability of every class for every task.

    Parameters
    ----------
    fit : fitted method
    path : path
        ``.npy``: an array (n_tasks, n_classes), with ``{"tasks": …, "classes": …}``, its rows and
        columns, in a ``.ids.json`` beside it. ``.parquet``: task, label, confidence, and
        soft_label as a list of fixed size, with the classes in the metadata of the schema.
        ``.jsonl``: the same, with soft_label as ``{class: probability}``. A folder: a Hugging Face
        data set as ``datasets.load_from_disk`` reads it, where ``datasets`` is installed.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    MissingDependencyError
        If a folder is asked for, and ``datasets`` is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from wisecrowd.aggregation import MajorityVote
    >>> fit = MajorityVote().fit((["a", "a", "b"], [1, 2, 1], ["cat", "dog", "dog"]))
    >>> array, ids = write_soft_labels(fit, Path(tempfile.mkdtemp()) / "soft.npy")
    >>> np.load(array).tolist(), ids.read_text()
    ([[0.5, 0.5], [0.0, 1.0]], '{"tasks": ["a", "b"], "classes": ["cat", "dog"]}\n')
    """
    kind = check_soft_path(path)
    result, target = SoftLabels.of(fit), Path(path)
    if kind == "npy":
        return _write_array(result, target)
    if kind == "folder":
        _write_data_set(as_hugging_face(result), target)
        return [target]
    table: dict[str, Any] = {
        "task": result.tasks, "label": result.labels, "confidence": result.confidence,
    }  # fmt: skip
    if kind == "parquet":
        names = json.dumps(plain_ids(result.classes), ensure_ascii=False)
        write_table(target, table | {"soft_label": result.dense()}, metadata={"classes": names})
    else:
        write_table(target, table | {"soft_label": _by_class(result)})
    return [target]


def _write_array(result: SoftLabels, target: Path) -> list[Path]:
    beside = ids_path(target)
    ids = {"tasks": plain_ids(result.tasks), "classes": plain_ids(result.classes)}
    with together():
        with atomic_write(target, "wb") as file:
            np.lib.format.write_array(file, result.dense(), allow_pickle=False)
        with atomic_write(beside) as text:
            text.write(json.dumps(ids, ensure_ascii=False) + "\n")
    return [target, beside]


def _by_class(result: SoftLabels) -> Any:
    import pyarrow as pa

    columns = [pa.array(column) for column in result.dense().T]
    return pa.StructArray.from_arrays(columns, [str(name) for name in plain_ids(result.classes)])


def require_hugging_face() -> Any:
    """Return the library ``datasets``, or say how to get it."""
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        raise MissingDependencyError(
            "A Hugging Face data set needs the library datasets; install it with "
            "`pip install datasets`, or write .parquet, which it reads too."
        ) from error


def as_hugging_face(fit: Any) -> Any:
    """Return the soft labels as a ``datasets.Dataset``: task, label, confidence, soft_label.

    ``label`` is a ClassLabel with the names of the classes, ``soft_label`` a list of their
    probabilities in the same order.

    Raises
    ------
    MissingDependencyError
        If ``datasets`` is not installed.
    """
    datasets = require_hugging_face()
    import pyarrow as pa

    from wisecrowd.core.ids.encoding import lookup
    from wisecrowd.io.writing import as_column

    result = SoftLabels.of(fit)
    names = [str(name) for name in plain_ids(result.classes)]
    codes = lookup(result.labels, result.classes).astype(np.int64)
    tasks = as_column(result.tasks)
    features = datasets.Features(
        {
            "task": datasets.Value("int64" if pa.types.is_integer(tasks.type) else "string"),
            "label": datasets.ClassLabel(names=names),
            "confidence": datasets.Value("float64"),
            "soft_label": datasets.Sequence(datasets.Value("float64"), length=len(names)),
        }
    )
    columns = [
        tasks, pa.array(codes), pa.array(result.confidence), as_column(result.dense()),
    ]  # fmt: skip
    table = pa.table(dict(zip(features, columns, strict=True))).cast(features.arrow_schema)
    made = datasets.Dataset(datasets.table.InMemoryTable(table))
    made.info.description = _DESCRIPTION
    return made


def _write_data_set(made: Any, target: Path) -> None:
    datasets = require_hugging_face()
    quiet = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        with atomic_directory(target, is_own_entry=is_data_set) as folder:
            made.save_to_disk(folder)
    finally:
        if not quiet:
            datasets.enable_progress_bars()


def is_data_set(entry: Path) -> bool:
    """Return whether a file belongs to a data set of soft labels that was written here."""
    own = entry.name in (_INFO, "state.json") or entry.suffix == ".arrow"
    try:
        info = json.loads(entry.with_name(_INFO).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    ours = isinstance(info, dict) and info.get("description") == _DESCRIPTION
    return entry.is_file() and own and ours


def plain_ids(values: NDArray[Any]) -> list[Any]:
    """Return ids as JSON values; ids that JSON does not have, such as dates, as text."""
    listed: list[Any] = values.tolist()
    return [x if isinstance(x, str | int | float | bool) else str(x) for x in listed]
