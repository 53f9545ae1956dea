"""Who judges and who are the people, and which questions belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.model_workers import KINDS
from wisecrowd.core.types import Longs, Mask

MOST_JUDGES = 100


class Roles(NamedTuple):
    """Codes of the judges, in order; who of the workers are people; and exchanged sides."""

    judges: list[int]
    people: Mask
    swaps: list[tuple[int, int]]


def roles_of(data: Annotations, judges: Any, people: Any, swap: Any) -> Roles:
    """Return who has which role.

    Models judge and humans are people, where the worker column ``kind`` says so. Named judges
    outrank it; then all other humans are people, or all other workers if there are no humans.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> kinds = {"ann": "human", "gpt": "model"}
    >>> data = CrowdLabels.from_arrays(
    ...     ["t", "t"], ["ann", "gpt"], ["a", "b"], worker_kind=kinds)
    >>> roles_of(data, None, None, None)
    Roles(judges=[1], people=array([ True, False]), swaps=[])
    """
    kind = data.worker_kind
    models = np.zeros(data.n_workers, dtype=bool)
    if kind is not None:
        models = np.array([str(one).lower() in KINDS for one in kind.tolist()], dtype=bool)
    swaps = _swaps(data, swap)
    present = data.labels_per_worker > 0
    present[[other for _, other in swaps]] = False
    if judges is None:
        chosen = np.flatnonzero(models & present).tolist()
        if not chosen:
            name = for_reader(
                'judges=[...], or read the file with kinds="all" if it has models', "--judges A,B"
            )
            raise ParameterError(
                "No worker is known to be a model, which a column worker_kind would say; name the "
                f"judges with {name}."
            )
    else:
        chosen = _codes(data, judges, "judges")
    if len(chosen) > MOST_JUDGES:
        raise ParameterError(
            f"There are {len(chosen)} judges, and at most {MOST_JUDGES} are compared; name some "
            f"with {for_reader('judges=[...]', '--judges A,B')}."
        )
    rest = present.copy()
    rest[chosen] = False
    if people is not None:
        own = _codes(data, people, "people")
        both = sorted(set(own) & set(chosen))
        if both:
            raise ParameterError(
                f"{describe_ids(data.workers[both])} cannot be judge and person at once; leave "
                "them out of one."
            )
        rest = np.isin(np.arange(data.n_workers), own)
    elif (rest & ~models).any():
        rest &= ~models
    return Roles(chosen, rest, swaps)


def _codes(data: Annotations, names: Any, what: str) -> list[int]:
    """Return the codes of named workers, each once."""
    listed = [names] if isinstance(names, str) or not isinstance(names, Sequence) else list(names)
    if isinstance(names, np.ndarray):
        listed = names.tolist()
    if not listed:
        raise ParameterError(f"{_spelled(what)} is empty; name workers, or leave it out.")
    codes = lookup(_like(listed, data.workers), data.workers)
    for name, code in zip(listed, codes.tolist(), strict=True):
        if code < 0:
            raise ParameterError(
                f"{_spelled(what)} names {name!r}{suggestion(name, data.workers)}, who gave no "
                f"labels; there are {describe_ids(data.workers)}."
            )
    return [int(code) for code in dict.fromkeys(codes.tolist())]


def _spelled(name: str) -> str:
    """Return the name of a parameter in the reader's syntax."""
    return for_reader(name, f"--{name}")


def _like(names: list[Any], known: Any) -> list[Any]:
    """Return names as numbers if the known ids are, as the command line has texts only."""
    if len(known) and not isinstance(known[0], str):
        by_text = {str(one): one for one in known.tolist()}
        return [by_text.get(name, name) if isinstance(name, str) else name for name in names]
    return names


def _swaps(data: Annotations, swap: Any) -> list[tuple[int, int]]:
    """Return the workers who are one judge that saw both orders of the sides."""
    if swap is None:
        return []
    if not isinstance(swap, Mapping):
        raise ParameterError(
            "swap is not a mapping; give {judge: the worker who is the judge with the sides "
            "exchanged}."
        )
    ones, others = _codes(data, list(swap), "swap"), _codes(data, list(swap.values()), "swap")
    if len(ones) != len(others) or set(ones) & set(others):
        raise ParameterError(f"{_spelled('swap')} names a worker twice; give each worker one role.")
    return list(zip(ones, others, strict=True))


def clusters_of(data: Annotations, cluster: Any) -> Longs | None:
    """Return the cluster of each task (n_tasks,); a task without one is alone.

    Parameters
    ----------
    data : Annotations
    cluster : mapping from task, (n_tasks,) array, name of a task column, or None

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> data = CrowdLabels.from_arrays(["t1", "t2", "t3"], ["ann"] * 3, ["a", "b", "a"])
    >>> clusters_of(data, {"t1": "x", "t3": "x"}).tolist()
    [0, 1, 0]
    """
    if cluster is None:
        return None
    if isinstance(cluster, str):
        if cluster not in data.task_columns:
            raise ParameterError(
                f"cluster is {cluster!r}{suggestion(cluster, list(data.task_columns))}, which is "
                "no column of the tasks; give a mapping from task to cluster."
            )
        values = data.task_columns[cluster].tolist()
    elif isinstance(cluster, Mapping):
        values = [cluster.get(task) for task in data.tasks.tolist()]
    else:
        values = np.asarray(cluster, dtype=object).tolist()
        if len(values) != data.n_tasks:
            raise DataError(
                f"cluster has {len(values)} entries; give one per task ({data.n_tasks}), or a "
                "mapping from task to cluster."
            )
    if all(is_missing(value) for value in values):
        raise DataError("cluster names none of the tasks; correct the ids of tasks.")
    code: dict[Any, int] = {}
    keys = [(n,) if is_missing(value) else str(value) for n, value in enumerate(values)]
    return np.array([code.setdefault(key, len(code)) for key in keys], dtype=np.int64)
