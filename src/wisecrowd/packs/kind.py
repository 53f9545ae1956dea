"""What engines and files of packs ask a kind: its ``PACKED``, in its module ``packed``.

No engine knows a kind. A kind whose labels can lie in packs has one object that says what the files
hold, gives shards and the pack itself in the form that its methods take, and writes their answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.kinds import get_kind, kind_names
from wisecrowd.core.result import Fit
from wisecrowd.inference.engine import posterior_and_more, posterior_of

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.core.problem import Problem
    from wisecrowd.packs.answers import AnswerParts, AnswerSums, PartPlan
    from wisecrowd.packs.pack import Pack

PACKED = "packed"  # the part of a kind
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class PackedData:
    """A pack as the data of a problem: sizes and sums, but no annotations.

    Attributes
    ----------
    pack : Pack
    parts : AnswerParts
        Where the answers go.
    """

    pack: Pack
    parts: AnswerParts

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return self.pack.summary.n_tasks

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.pack.summary.n_workers

    @property
    def n_annotations(self) -> int:
        """Number of annotations."""
        return self.pack.summary.n_annotations

    @property
    def workers(self) -> NDArray[Any]:
        """(n_workers,) ids."""
        return self.pack.workers

    @property
    def worker_totals(self) -> NDArray[np.float64]:
        """(n_workers,) total weight of each worker's annotations."""
        return np.array(self.pack.worker_totals)


@posterior_of.register
def _(data: PackedData, n_classes: int | None = None) -> tuple[Any, Any]:
    return data.parts, data.parts


@posterior_and_more.register
def _(data: PackedData) -> tuple[Any, Any, Any]:
    return data.parts, data.parts, None  # more than the posterior is not kept


class PackFindings(NamedTuple):
    """Findings on a fit to a pack, and the names of checks that were not made."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]


class PackedKind:
    """What packs hold of a kind, and how methods see it.

    Attributes
    ----------
    container : subclass of Annotations
        What holds such annotations in memory.
    payload : mapping of name to dtype
        Arrays of a shard, one value per annotation, that hold the answers where cells do not.
    lists : mapping of name to length
        Lists of ``pack.json`` that only this kind has.
    answer_columns : set of str
        Columns by which the files of answers are recognised.
    ordered : bool
        Whether numeric classes are in the order of the numbers.
    one_question : bool
        Whether the answers of a file with several questions need several packs.
    keeps_repeats : bool
        Whether a worker may have several annotations of a task unless told otherwise.
    """

    container: ClassVar[type[Annotations]]
    payload: ClassVar[Mapping[str, str]] = {}
    lists: ClassVar[Mapping[str, int]] = {}
    answer_columns: ClassVar[frozenset[str]]
    ordered: bool = False
    one_question: ClassVar[bool] = False
    keeps_repeats: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The kind of the packs; ordered classes lie in packs of classes."""
        return self.container.kind

    @property
    def of_classes(self) -> bool:
        """Whether cells hold classes."""
        return self.container.of_classes

    @property
    def about_items(self) -> bool:
        """Whether there are items, which the answers are about."""
        return self.container.about_items

    # ------------------------------------------------------------------------- content of files

    def ranges(self, pack: Pack) -> dict[str, Range]:
        """Return the least and the largest value of each array of the payload."""
        return {}

    def fault(self, payload: Mapping[str, NDArray[Any]]) -> tuple[str, str] | None:
        """Return an array of a shard that cannot be and why, or None."""

    def known(self, gold: NDArray[Any]) -> NDArray[np.bool_]:
        """Return where the known answers of tasks are given."""
        return np.asarray(~np.isnan(gold))

    def in_memory(
        self, pack: Pack, task: NDArray[np.int32], tasks: NDArray[Any],
        columns: dict[str, NDArray[Any]],
    ) -> Annotations:  # fmt: skip
        """Return the annotations of a pack, given task codes, task ids and all other columns."""
        raise TypeError(f"{type(self).__name__} must define in_memory.")

    # ------------------------------------------------------------------------------------- fits

    def load(self, pack: Pack, number: int) -> Any:
        """Return a shard in the form that models take."""
        raise TypeError(f"{type(self).__name__} must define load.")

    def merged(self, pack: Pack) -> Any:
        """Return the distinct rows of all shards as one shard; None if shards are read."""

    def problem_of(self, pack: Pack, parts: AnswerParts) -> tuple[Any, Any]:
        """Return a pack as the data of a problem, and its prior; gold lies in the shards."""
        raise TypeError(f"{type(self).__name__} must define problem_of.")

    def check(self, method: Aggregator, data: Any) -> None:
        """Refuse methods that cannot fit this pack."""

    def write(self, pack: Pack, shard: Any, rows: Any, plan: PartPlan) -> AnswerSums:
        """Write the answers of a shard, if asked for, and return its sums."""
        raise TypeError(f"{type(self).__name__} must define write.")

    def finished(self, fit: Fit, data: Any) -> Fit:
        """Return the fit with what follows from the answers of all shards."""
        return fit

    def capped(self, fit: Fit, most: float) -> Fit:
        """Return the fit with answers of at most this confidence; parts are capped already."""
        return fit

    def findings(self, data: Any, problem: Problem[Any, Any], fit: Fit) -> PackFindings:
        """Return the findings of the common checks, which need the annotations in memory."""
        return PackFindings((), ("the common checks of a fit",))

    def learned(self, pack: Pack, fit: Fit) -> dict[str, Any]:
        """Return what a fit in memory publishes beside ``extra`` and the accuracies."""
        return {}

    def item_table(self, learned: Mapping[str, Any]) -> dict[str, NDArray[Any]] | None:
        """Return one row per item, the best first; None if answers are about tasks."""


def packed_kind(name: str) -> PackedKind:
    """Return what packs hold of a kind.

    Examples
    --------
    >>> packed_kind("ordered").name
    'labels'
    """
    module: Any = get_kind(name).part(PACKED)
    found: PackedKind = module.PACKED
    return found


def is_packable(name: Any) -> bool:
    """Return whether packs hold this kind."""
    return isinstance(name, str) and name in kind_names() and get_kind(name).has_part(PACKED)


def is_of_packs(name: Any) -> bool:
    """Return whether packs have this kind by this name."""
    return is_packable(name) and packed_kind(name).name == name


def packable_kinds() -> list[str]:
    """Return the names of the kinds that packs hold, those under another name first.

    Examples
    --------
    >>> packable_kinds()
    ['ordered', 'labels', 'numbers', 'pairs']
    """
    return sorted(filter(is_packable, kind_names()), key=is_of_packs)
