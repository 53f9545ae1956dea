"""Validation of columns of sets: they become checked CrowdSets."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import WORKER_KIND
from wisecrowd.core.arrow import to_numpy
from wisecrowd.core.duplicates import arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_value, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.set_text import BETWEEN, doubtful_set, is_nothing, parse_set
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    distinct_ids,
    measured_columns,
    worker_kinds,
)

Sets = TypeVar("Sets", bound=CrowdSets)


class DistinctSets(NamedTuple):
    """Different sets, and which of them each annotation is.

    Attributes
    ----------
    code : (n_annotations,) int32
        Number of the set.
    members, pointer : (n_members,), (n_sets + 1,)
        Codes of the classes, one set after the other.
    classes : (n_classes,) str
    """

    code: NDArray[np.int32]
    members: NDArray[np.int32]
    pointer: NDArray[np.int64]
    classes: NDArray[Any]


def sets_from_columns(
    container: type[Sets],
    task: Any,
    worker: Any,
    *,
    label: Any = None,
    classes: Any = None,
    tasks: Any = None,
    workers: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "auto",
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> Sets:
    """Build sets from columns; see :meth:`CrowdSets.from_arrays`."""
    places = places or Places({})
    check_columns(duplicates, columns)
    if task is None or worker is None or label is None:
        raise ParameterError(f"{container.__name__} need the columns task, worker and label.")
    check_lengths({"task": task, "worker": worker, "label": label, "weight": weight,
                   "worker_kind": worker_kind, **columns})  # fmt: skip
    task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    if len(task_codes) == 0:
        raise DataError("There are no annotations: the table has no data rows.")
    found = distinct_sets(label, classes, places)
    notes = (*notes, *warn_of_lookalikes(task_ids, worker_ids, found.classes))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    table = arrange(
        (task_codes, worker_codes, found.code),
        (len(task_ids), len(worker_ids), len(found.pointer) - 1), None,
        measured_columns({**columns, "weight": weight}, places), duplicates, places,
    )  # fmt: skip
    size = np.diff(found.pointer)[table.label]
    pointer = np.append(0, np.cumsum(size))
    place = np.repeat(found.pointer[table.label] - pointer[:-1], size) + np.arange(pointer[-1])
    return container(
        task=table.task, worker=table.worker, tasks=task_ids, workers=worker_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=(*notes, table.note) if table.note else notes,
        frame_library=frame_library,
        members=found.members[place], pointer=pointer, classes=found.classes,
    )  # fmt: skip


def distinct_sets(label: Any, classes: Any, places: Places) -> DistinctSets:
    """Read a column of sets: every different value is parsed once."""
    code, values = _distinct_values(label)
    lists = []
    for number, value in enumerate(values):
        try:
            lists.append([] if is_nothing(value) else parse_set(value))
        except ValueError as error:
            shown = repr(value if len(str(value)) <= 60 else f"{str(value)[:60]}...")
            raise DataError(f"The set {shown} in {places.where(code == number)} {error}.") from None
    if classes is None:
        _refuse_doubtful(code, values, places)
    names = sorted({name for one in lists for name in one})
    vocabulary = _vocabulary(names, classes)
    found = lookup(names, vocabulary) if names else np.zeros(0, dtype=np.int32)
    if (found < 0).any():
        strange = names[int(np.argmax(found < 0))]
        number = next(k for k, one in enumerate(lists) if strange in one)
        raise DataError(
            f"The class {strange!r}{suggestion(strange, vocabulary.tolist())} in "
            f"{places.where(code == number)} is not among the declared classes "
            f"({describe_ids(vocabulary)}); correct it, or add it to classes."
        )
    where = dict(zip(names, found.tolist(), strict=True))
    coded = [tuple(sorted(where[name] for name in one)) for one in lists]
    # Sets that are equal get one number, in an order that does not depend on the rows.
    distinct = sorted(set(coded))
    number_of = {one: number for number, one in enumerate(distinct)}
    place = np.array([number_of[one] for one in coded], dtype=np.int32)
    return DistinctSets(
        place[code],
        np.array([k for one in distinct for k in one], dtype=np.int32),
        np.cumsum([0, *map(len, distinct)]).astype(np.int64),
        vocabulary,
    )


def _refuse_doubtful(code: NDArray[np.int32], values: list[Any], places: Places) -> None:
    """Ask about text that may be one class or several."""
    doubt = doubtful_set(value for value in values if isinstance(value, str))
    if doubt is None:
        return
    name, sign = doubt
    numbers = [k for k, one in enumerate(values) if isinstance(one, str) and name in parse_set(one)]
    quoted = f'"{name}"' if "," in name else name
    said = for_reader(f"classes=[{name!r}, ...]", f"--classes '{quoted},...'")
    raise DataError(
        f"{describe_value(name)} in {places.where(np.isin(code, numbers))} may be one class or "
        f"several with {sign!r} between them; write {BETWEEN} between classes, or declare all "
        f"classes ({said}) if it is one."
    )


def _distinct_values(label: Any) -> tuple[NDArray[np.int32], list[Any]]:
    """Return the number of each row's value, and the different values."""
    if not isinstance(label, Encoded):
        values = to_numpy(label)
        if values.dtype == object and not all(isinstance(x, str) for x in values.tolist()):
            return np.arange(len(values), dtype=np.int32), values.tolist()
        label = encode(values, "label")
    return np.where(label.codes < 0, len(label.vocabulary), label.codes).astype(np.int32), [
        *label.vocabulary.tolist(), None
    ]  # fmt: skip


def _vocabulary(names: list[str], classes: Any) -> NDArray[Any]:
    """Return the classes as text: the declared ones, or those in the sets, sorted."""
    if classes is not None:
        declared = [str(one) for one in distinct_ids(classes, "classes").tolist()]
        return np.array(declared, dtype=object)
    if not names:
        raise DataError(
            "All sets are empty, and no classes are declared; name the classes that workers could "
            "choose from."
        )
    return np.array(encode(names, "label").vocabulary.tolist(), dtype=object)
