"""CrowdSets: sets of classes by workers, frozen, sorted and sparse; how columns become them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload, Vocabulary
from wisecrowd.core.arrow import to_numpy
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.intake import Intake
from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_value, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats
from wisecrowd.core.validation import (
    distinct_ids,
)
from wisecrowd.kinds import BETWEEN
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.sets.set_text import doubtful_set, is_nothing, joined_sets, parse_set

OUT_AND_IN = ("out", "in")  # classes of one class of a set, as labels


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdSets(Annotations):
    """Sets of classes: a worker gives a task any number of classes, or none of them.

    An empty set is an answer; a worker who has not seen a task has no row for it.
    :meth:`from_arrays` and :meth:`from_frame` check their arguments; the constructor does not.

    Attributes
    ----------
    members : (n_members,) int32
        Codes into ``classes``, ascending in each set, one set after the other.
    pointer : (n_annotations + 1,) int64
        Set ``e`` is ``members[pointer[e]:pointer[e + 1]]``.
    classes : (n_classes,) str
        All classes.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> sets = ["cat|dog", '["dog"]', ""]
    >>> data = CrowdSets.from_arrays(["t1", "t1", "t2"], ["ann", "bob", "ann"], sets)
    >>> data
    CrowdSets(2 tasks, 2 workers, 2 classes, 3 annotations)
    >>> data.sizes.tolist()
    [2, 1, 0]
    """

    kind: ClassVar[str] = "sets"
    lists: ClassVar[bool] = True
    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("members", vocabulary="classes", pointer="pointer"),
    )
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "K": "classes_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "classes_": SavedArray("K", "id"),
    }

    members: Codes
    pointer: NDArray[np.int64]
    classes: Vocabulary

    @classmethod
    def roles(cls) -> dict[str, tuple[str, ...]]:
        """Return the column of the sets, with its usual names."""
        return {"label": ("label", "labels", "members", "answer", "response", "class", "category")}

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker and set.

        Parameters
        ----------
        task, worker : (n_annotations,) ids
        *values
            ``label``: sets or lists of classes, or text: a JSON list, or classes with ``|`` between
            them. Nothing, ``[]`` and empty text are the empty set.
        **options
            ``classes``: all classes, including those in no set. ``tasks``, ``workers``, ``weight``,
            ``timestamp``, ``duration``, ``cost``, ``question``, ``worker_kind`` and ``duplicates``
            are described in :meth:`CrowdLabels.from_arrays`.
        """
        given = {"label": values[0]} if values else {}
        return sets_from_columns(cls, task, worker, **given, **options)

    @cached_property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(n_annotations,) number of classes in each set."""
        return np.diff(self.pointer)

    @cached_property
    def annotation(self) -> NDArray[np.int64]:
        """(n_members,) the annotation of each member."""
        return np.repeat(np.arange(self.n_annotations), self.sizes)

    @cached_property
    def votes(self) -> Floats:
        """(n_tasks, n_classes) weight of the sets of each task with each class."""
        place = self.task[self.annotation].astype(np.int64) * self.n_classes + self.members
        weight = self.weights[self.annotation]
        cells = np.bincount(place, weight, self.n_tasks * self.n_classes).astype(np.float64)
        return np.asarray(cells.reshape(self.n_tasks, self.n_classes))

    @cached_property
    def total_weight(self) -> Floats:
        """(n_tasks,) weight of the sets of each task."""
        return np.asarray(np.bincount(self.task, self.weights, self.n_tasks), dtype=np.float64)

    def to_labels(self, k: int) -> CrowdLabels:
        """Return whether class ``k`` is in each set, as labels with the classes out and in."""
        label = np.zeros(self.n_annotations, dtype=np.int32)
        label[self.annotation[self.members == k]] = 1
        return CrowdLabels(
            self.task, self.worker, label, self.tasks, self.workers,
            np.array(OUT_AND_IN, dtype=object), weight=self.weight,
            columns=dict(self.columns),
        )  # fmt: skip

    def _values(self, part: Payload) -> NDArray[Any]:
        """Return the sets as text."""
        return joined_sets(self.members, self.pointer, self.classes)

    def _table(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the columns of the long table; the sets are in the column ``label``."""
        for name, values in super()._table():
            yield "label" if name == "members" else name, values

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        codes = self.members[self.pointer[e] : self.pointer[e + 1]]
        return ", ".join(sorted(map(str, self.classes[codes]))) or "nothing"


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
    container: type[Sets], task: Any, worker: Any, *, label: Any = None, classes: Any = None,
    **shared: Any,
) -> Sets:  # fmt: skip
    """Build sets from columns; see :meth:`CrowdSets.from_arrays`."""
    rows = Intake.open(container, task, worker, {"label": label}, **shared)
    found = distinct_sets(label, classes, rows.places)
    rows.note_lookalikes(found.classes)
    table = rows.arrange(found.code, len(found.pointer) - 1)
    place, pointer = ragged_places(found.pointer, table.label)
    return rows.build(
        container, table, members=found.members[place], pointer=pointer, classes=found.classes
    )


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
