"""Known sets of tasks: gold and priors for a fit, and the truth for a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs, one_per_task
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.prior import as_number_table
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.set_text import is_nothing, parse_set


class SetPrior(NamedTuple):
    """What is known about sets before any label.

    Attributes
    ----------
    known : (n_tasks,) bool, optional
        Tasks whose set is known.
    members : (n_tasks, n_classes) bool, optional
        The known sets.
    probas : (n_tasks, n_classes), optional
        Probability of every class of every task before any label is seen.
    """

    known: Mask | None = None
    members: Mask | None = None
    probas: Floats | None = None


class KnownSets(NamedTuple):
    """The true sets of some tasks.

    Attributes
    ----------
    known : (n_tasks,) bool
    members : (n_tasks, n_classes + n_others) bool
        The classes of the data come first, then those that only the truth has.
    """

    known: Mask
    members: Mask

    @property
    def rows(self) -> NDArray[np.intp]:
        """The tasks with a truth."""
        return np.flatnonzero(self.known)


def set_prior(task_prior: Any, gold: Any, data: CrowdSets) -> SetPrior:
    """Return known sets and the probabilities of classes, checked."""
    probas = None if task_prior is None else _probabilities(task_prior, data)
    if gold is None:
        return SetPrior(probas=probas)
    found = known_sets(gold, data, "gold", refuse_others=True)
    return SetPrior(found.known, found.members, probas)


def known_sets(
    truth: Any, data: CrowdSets, what: str = "truth", *, refuse_others: bool = False
) -> KnownSets:
    """Return the true sets of the tasks of the data.

    Parameters
    ----------
    truth : mapping from task to set, (task, label) frame, or (n_tasks,) array with None
        Sets are text (``a|b`` or a JSON list), lists or sets; ``[]`` and "" are the empty set.
    data : CrowdSets
    what : str
        Name of the truth in messages.
    refuse_others : bool
        Whether classes outside of the data are an error. Otherwise they count as missed.
    """
    if isinstance(truth, list | tuple | np.ndarray):
        ids, values = data.tasks.tolist(), one_per_task(truth, data.tasks, "set", what)
    else:
        ids, values = as_pairs(truth, data, what)[1]
    place = {name: code for code, name in enumerate(data.classes.tolist())}
    known, cells = np.zeros(data.n_tasks, dtype=bool), []
    for code, task, value in zip(lookup(ids, data.tasks).tolist(), ids, values, strict=True):
        if code < 0 or is_nothing(value):
            continue
        try:
            names = parse_set(value)
        except ValueError as error:
            raise DataError(f"The {what} of task {task!r} {error}.") from None
        for name in names:
            if name not in place and refuse_others:
                raise DataError(
                    f"The {what} gives task {task!r} the class "
                    f"{name!r}{suggestion(name, data.classes.tolist())}, which is not among the "
                    f"classes ({describe_ids(data.classes)}); correct it, or declare it in classes."
                )
            cells.append((code, place.setdefault(name, len(place))))
        known[code] = True
    if not known.any():
        raise DataError(f"The {what} names none of these tasks; compare the ids.")
    members = np.zeros((data.n_tasks, len(place)), dtype=bool)
    if cells:
        members[tuple(np.array(cells).T)] = True
    return KnownSets(known, members)


def _probabilities(prior: Any, data: CrowdSets) -> Floats:
    """Return (n_tasks, n_classes) probabilities strictly between 0 and 1."""
    table = as_number_table(prior, "task prior")
    shapes = ((data.n_classes,), (data.n_tasks, data.n_classes))
    if table.shape not in shapes:
        raise DataError(
            f"The task prior has shape {table.shape}; give ({data.n_classes},) for all tasks or "
            f"({data.n_tasks}, {data.n_classes}): one row per task, one column per class."
        )
    if not ((table >= 0) & (table <= 1)).all():
        raise DataError(
            "The task prior has a value that is not between 0 and 1; give the probability that "
            "each class is in the set."
        )
    return np.broadcast_to(np.clip(table, 1e-9, 1 - 1e-9), shapes[1])
