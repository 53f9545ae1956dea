"""Preferences for trainers of language models: rows of prompt, chosen and rejected text."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.types import Floats
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read_frame
from wisecrowd.io.writing import write_table
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import RIGHT, TIE

SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".pq")
COLUMNS = ("prompt", "chosen", "rejected", "worker", "flip_rate", "weight")
Texts = Mapping[Any, str] | str | os.PathLike[str]


def write_preferences(
    path: str | os.PathLike[str],
    votes: CrowdPairs,
    fit: Any = None,
    *,
    items: Texts | None = None,
    prompts: Texts | None = None,
    ties: str = "drop",
    adversaries: str = "turn",
) -> int:
    r"""Write votes as rows that trainers of preferences read, such as TRL, and return their number.

    A row has prompt, chosen, rejected, worker, flip_rate and weight. A loss with a flip rate per
    row (:func:`wisecrowd.nn.robust_preference_loss`) takes ``flip_rate``; a trainer with weights
    takes ``weight``; the others use the texts alone.

    Parameters
    ----------
    path : path
        ``.jsonl`` or ``.parquet``.
    votes : CrowdPairs
    fit : fitted method with ``reliability_``, optional
        ``CrowdBT`` or ``PreferenceNet``. The flip rate of a worker is one minus the reliability; a
        worker who was not in the fit has the mean. Without a fit, flip rates are 0.
    items : mapping from item to text, or path, optional
        Text of each item; keys may be (task, item) if a text belongs to one task. A file is a table
        with the columns item and text, and task if needed. The default is the id.
    prompts : mapping from task to text, or path, optional
        Prompt of each task. A file has the columns task and prompt. The default is the id.
    ties : {"drop", "both"}
        Leave ties out, or write both orders with half the weight.
    adversaries : {"turn", "keep", "drop"}
        Votes of workers with a reliability below one half. "turn" exchanges chosen and rejected,
        which the model of reliabilities says is right, and the flip rate is below one half.

    Notes
    -----
    The weight is that of the vote times :math:`1 - 2 \epsilon`: near equal scores, the gradient of
    the logistic loss with these weights is that of the likelihood with reliabilities.

    Examples
    --------
    >>> import json, tempfile
    >>> votes = CrowdPairs.from_arrays(["q"], ["ann"], ["x"], ["y"], ["right"])
    >>> file = Path(tempfile.mkdtemp()) / "preferences.jsonl"
    >>> write_preferences(file, votes, items={"x": "No.", "y": "Yes."}, prompts={"q": "Is it?"})
    1
    >>> row = json.loads(file.read_text())
    >>> row["prompt"], row["chosen"], row["rejected"]
    ('Is it?', 'Yes.', 'No.')
    """
    check_preferences_path(path)
    rows = preference_rows(
        votes, fit, items=items, prompts=prompts, ties=ties, adversaries=adversaries
    )
    write_table(path, rows)
    return len(rows["weight"])


def check_preferences_path(path: str | os.PathLike[str]) -> None:
    """Refuse a file name whose suffix names no format with typed columns."""
    if Source(Path(path)).suffix not in SUFFIXES:
        raise ParameterError(
            f"Preferences cannot be written as {os.fspath(path)}; end the name in .jsonl or "
            ".parquet."
        )


def preference_rows(
    votes: CrowdPairs,
    fit: Any = None,
    *,
    items: Texts | None = None,
    prompts: Texts | None = None,
    ties: str = "drop",
    adversaries: str = "turn",
) -> dict[str, NDArray[Any]]:
    """Return the columns that :func:`write_preferences` writes."""
    check_choice("ties", ties, ("drop", "both"))
    check_choice("adversaries", adversaries, ("turn", "keep", "drop"))
    if votes.relation != "prefers":
        raise DataError(
            f"The votes say which items are {votes.relation!r}; give votes with relation 'prefers'."
        )
    flips = flip_rates(votes, fit)[votes.worker]
    tie = votes.outcome == TIE
    kept = np.ones(len(flips), dtype=bool) if ties == "both" else ~tie
    if adversaries == "drop":
        kept &= flips <= 0.5
    # A tie is written in both orders; the second one comes right after the first.
    row = np.repeat(np.arange(len(flips)), np.where(tie, 2, 1) * kept)
    second = np.append(False, row[1:] == row[:-1])
    right_won = np.where(tie[row], second, votes.outcome[row] == RIGHT)
    flip, weight = flips[row], np.where(tie[row], 0.5, 1.0) * votes.weights[row]
    if adversaries == "turn":
        wrong = flip > 0.5
        right_won, flip = right_won ^ wrong, np.where(wrong, 1 - flip, flip)
    left, right = votes.left[row], votes.right[row]
    chosen, rejected = np.where(right_won, right, left), np.where(right_won, left, right)
    task = votes.task[row]
    texts = _ItemTexts(items, votes)
    return {
        "prompt": _prompts(prompts, votes)[task],
        "chosen": texts.of(task, chosen),
        "rejected": texts.of(task, rejected),
        "worker": votes.workers[votes.worker[row]],
        "flip_rate": flip,
        "weight": weight * np.maximum(1 - 2 * flip, 0.0),
    }


def flip_rates(votes: CrowdPairs, fit: Any) -> Floats:
    """Return the (J,) shares of votes for the wrong side, by the reliabilities of a fit.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(["q"], ["ann"], ["x"], ["y"], ["right"])
    >>> flip_rates(votes, None)
    array([0.])
    """
    if fit is None:
        return np.zeros(votes.n_workers)
    reliability = vars(fit).get("reliability_")
    if reliability is None:
        raise ParameterError(
            f"{type(fit).__name__} has no reliability_ of workers; fit crowd-bt, or preference-net "
            "with loss 'per-worker', or leave the fit out."
        )
    counts = fit.labels_per_worker_
    typical = float(np.average(reliability, weights=counts if counts.sum() else None))
    known = lookup(votes.workers, fit.workers_)
    return np.where(known >= 0, 1 - reliability[known], 1 - typical)


# -------------------------------------------------------------------------------------------- texts


def _prompts(prompts: Texts | None, votes: CrowdPairs) -> NDArray[Any]:
    """Return the (n_tasks,) prompts."""
    if prompts is None:
        return _objects([str(task) for task in votes.tasks.tolist()])
    known = _mapping(prompts, (("task",),), ("prompt", "text"))
    found = [_find(known, (task,)) for task in votes.tasks.tolist()]
    _require_all(found, votes.labels_per_task > 0, votes.tasks, "task", "prompt", known)
    return _objects(["" if text is None else text for text in found])


class _ItemTexts:
    """Texts by item, or by task and item."""

    def __init__(self, items: Texts | None, votes: CrowdPairs) -> None:
        self.votes = votes
        known = None
        if items is not None:
            known = _mapping(items, (("task", "item"), ("item",)), ("text", "response", "content"))
        self.by_task = known is not None and any(isinstance(key, tuple) for key in known)
        self.known = known
        if known is not None and not self.by_task:
            found = [_find(known, (item,)) for item in votes.items.tolist()]
            used = votes.comparisons_per_item > 0
            _require_all(found, used, votes.items, "item", "text", known)
            self.table = _objects(["" if text is None else text for text in found])
        elif known is None:
            self.table = _objects([str(item) for item in votes.items.tolist()])

    def of(self, task: NDArray[Any], item: NDArray[Any]) -> NDArray[Any]:
        """Return the texts of items, each in its task."""
        if not self.by_task:
            return np.asarray(self.table[item])
        assert self.known is not None
        pair, place = np.unique(task.astype(np.int64) * self.votes.n_items + item,
                                return_inverse=True)  # fmt: skip
        texts: list[str] = []
        for one in pair.tolist():
            key = (
                self.votes.tasks[one // self.votes.n_items],
                self.votes.items[one % self.votes.n_items],
            )
            text = _find(self.known, key)
            if text is None:
                raise DataError(
                    f"There is no text of item {key[1]!r} in task {key[0]!r}; add it to the items."
                )
            texts.append(text)
        return np.asarray(_objects(texts)[place])


def _mapping(
    given: Texts, keys: Sequence[tuple[str, ...]], texts: Sequence[str]
) -> Mapping[Any, str]:
    """Return texts by key, read from a file if it is a path."""
    if isinstance(given, Mapping):
        return given
    frame = read_frame(given)
    names = {name.lower(): name for name in frame.column_names}
    text = next((names[name] for name in texts if name in names), None)
    key = next((key for key in keys if all(name in names for name in key)), None)
    if text is None or key is None:
        raise DataError(
            f"{os.fspath(given)} has the columns {', '.join(map(repr, frame.column_names))}; call "
            f"them {', '.join(keys[-1])} and {texts[0]}."
        )
    columns = [[str(x) for x in frame[names[name]].to_pylist()] for name in key]
    ids: list[Hashable] = list(zip(*columns, strict=True)) if len(key) > 1 else list(columns[0])
    values = frame[text].to_pylist()
    found: dict[Any, str] = {}
    for row, (one, value) in enumerate(zip(ids, values, strict=True), 1):
        if value is None:
            raise DataError(f"Row {row} of {os.fspath(given)} has no {texts[0]}; fill it in.")
        if found.setdefault(one, str(value)) != str(value):
            raise DataError(f"{os.fspath(given)} gives {one!r} two texts (row {row}); keep one.")
    return found


def _find(known: Mapping[Any, str], key: tuple[Any, ...]) -> str | None:
    """Return the text of a key; ids of files are text, so numbers are looked up as text too."""
    own = key if len(key) > 1 else key[0]
    if own in known:
        return str(known[own])
    plain = tuple(map(str, key))
    text = known.get(plain if len(plain) > 1 else plain[0])
    return None if text is None else str(text)


def _require_all(
    found: list[str | None], used: NDArray[np.bool_], ids: NDArray[Any], what: str, text: str,
    known: Mapping[Any, str],
) -> None:  # fmt: skip
    lost = np.array([value is None for value in found]) & used
    if lost.any():
        first = ids[lost].tolist()[0]
        raise DataError(
            f"{int(lost.sum())} of {int(used.sum())} {what}s have no {text}, such as {first!r}"
            f"{suggestion(first, list(known))}; add them."
        )


def _objects(values: list[str]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
