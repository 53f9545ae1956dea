"""Workers whose labels depend on those of others: copiers, colluders, groups of one opinion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.families.label_law import CumulativeTable
from wisecrowd.kinds.classes.simulate.confusion_workers import OneCoinWorkers
from wisecrowd.kinds.classes.simulate.worker_population import (
    DependentPopulation,
    Draft,
    Population,
)


def _check_own(own: object) -> None:
    if not isinstance(own, Population) or isinstance(own, DependentPopulation):
        raise ParameterError(f"`own` must be a population that draws its own labels, not {own!r}.")


@dataclass(frozen=True)
class Copiers(DependentPopulation):
    r"""Workers who give the label of another worker with probability p, else their own.

    .. math:: y_{ij} = y_{i s(j)} \;\text{with probability } p, \qquad
              \theta_j = p\, \theta_{s(j)} + (1 - p)\, \theta_j^{\text{own}}

    On a task that the source did not label, the copiers learn what it would have said; all
    copiers of one source in this population learn the same.

    Parameters
    ----------
    p : float, default 1
        Probability to copy, for each label.
    sources : int or tuple of int, optional
        Worker code, counted from 0, that all copy, or one per copier. By default each copier
        has a source drawn among the workers who draw their own labels.
    own : Population, default OneCoinWorkers()
        How the labels that are not copied are drawn.

    References
    ----------
    P. Cao, Y. Xu, Y. Kong, Y. Wang (2019). Max-MIG: an information theoretic approach for joint
    learning from crowds. ICLR.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     5, 2 * simulate.OneCoinWorkers() + 2 * Copiers(sources=0), simulate.Dense()
    ... )
    >>> table = crowd.labels.label.reshape(5, 4)
    >>> bool((table[:, 2:] == table[:, :1]).all())
    True
    """

    kind: ClassVar[str] = "copiers"
    p: float = 1.0
    sources: int | tuple[int, ...] | None = None
    own: Population = field(default_factory=OneCoinWorkers)

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)
        _check_own(self.own)
        if self.sources is not None:
            given = self.sources if isinstance(self.sources, tuple) else (self.sources,)
            for source in given:
                check_integer("sources", source, 0)
            object.__setattr__(self, "sources", given)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw the matrices of the labels that are not copied."""
        return self.own.sample(n_workers, n_classes, rng)

    def rewrite(self, draft: Draft, members: Codes, rng: np.random.Generator) -> None:
        """Replace labels by the source's."""
        source = self._sources_of(members, draft, rng)
        rows = draft.rows_of(members)
        rows = rows[rng.random(rows.size) < self.p]
        source_of_worker = np.zeros(draft.draws_alone.size, dtype=np.int32)
        source_of_worker[members] = source
        copied_from = source_of_worker[draft.worker[rows]]
        draft.label[rows] = draft.opinion(draft.task[rows], copied_from, rng)
        draft.confusion[members] *= 1.0 - self.p
        draft.confusion[members] += self.p * draft.confusion[source]

    def _sources_of(self, members: Codes, draft: Draft, rng: np.random.Generator) -> Codes:
        candidates = np.flatnonzero(draft.draws_alone).astype(np.int32)
        if candidates.size == 0:
            raise ParameterError(
                "There is nobody to copy: add workers who draw their own labels to the crowd."
            )
        if self.sources is None:
            return rng.choice(candidates, size=members.size)
        sources = np.array(self.sources, dtype=np.int32)
        if sources.size not in (1, members.size):
            raise ParameterError(
                f"`sources` names {sources.size} workers for {members.size} copiers."
            )
        unknown = ~np.isin(sources, candidates)
        if unknown.any():
            raise ParameterError(
                f"`sources` names worker {sources[unknown][0]}, who is not in the crowd "
                "or does not draw labels alone."
            )
        return np.broadcast_to(sources, members.shape)


@dataclass(frozen=True)
class Colluders(DependentPopulation):
    r"""A group that agrees on one wrong label per task and gives it with probability p.

    .. math:: w_i \sim \text{Uniform}(\{1..K\} \setminus z_i), \qquad
              y_{ij} = w_i \;\text{with probability } p, \;\text{else a label of one's own}

    Each mention of this population in a crowd is a group with labels :math:`w_i` of its own.

    Parameters
    ----------
    p : float, default 0.9
        Probability to follow the group, for each label.
    own : Population, default OneCoinWorkers()
        How the other labels are drawn.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     6, 3 * simulate.OneCoinWorkers() + 2 * Colluders(1.0), simulate.Dense(), n_classes=3
    ... )
    >>> table = crowd.labels.label.reshape(6, 5)
    >>> bool((table[:, 3] == table[:, 4]).all()), bool((table[:, 3] == crowd.truth_codes).any())
    (True, False)
    """

    kind: ClassVar[str] = "colluders"
    p: float = 0.9
    own: Population = field(default_factory=OneCoinWorkers)

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)
        _check_own(self.own)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw the matrices of the labels given alone."""
        if n_classes < 2:
            raise ParameterError("Colluders need a wrong label to agree on: at least 2 classes.")
        return self.own.sample(n_workers, n_classes, rng)

    def rewrite(self, draft: Draft, members: Codes, rng: np.random.Generator) -> None:
        """Replace labels by the group's."""
        n_classes = draft.confusion.shape[1]
        shift = rng.integers(1, n_classes, size=draft.truth.size)
        agreed = ((draft.truth + shift) % n_classes).astype(np.int32)
        rows = draft.rows_of(members)
        rows = rows[rng.random(rows.size) < self.p]
        draft.label[rows] = agreed[draft.task[rows]]
        draft.confusion[members] *= 1.0 - self.p
        draft.confusion[members] += self.p * (1.0 - np.eye(n_classes)) / (n_classes - 1)


@dataclass(frozen=True)
class DependentGroup(DependentPopulation):
    r"""A group with one hidden opinion per task, which its workers report with errors.

    .. math:: w_i \mid z_i = k \sim \Xi[k, \cdot], \qquad
              y_{ij} \mid w_i = c \sim \tilde\theta_j[c, \cdot], \qquad
              \theta_j = \Xi\, \tilde\theta_j

    Each mention of this population in a crowd is a group with opinions of its own.

    Parameters
    ----------
    source : Population, default OneCoinWorkers(7, 3)
        How the opinion errs; one matrix is drawn for the group.
    members : Population, default OneCoinWorkers(18, 2)
        How workers err in reporting it.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> faithful = simulate.FixedConfusion(np.eye(3))
    >>> crowd = simulate.crowd(
    ...     6, 4 * DependentGroup(members=faithful), simulate.Dense(), n_classes=3
    ... )
    >>> table = crowd.labels.label.reshape(6, 4)
    >>> bool((table == table[:, :1]).all())
    True
    """

    kind: ClassVar[str] = "dependent-group"
    source: Population = field(default_factory=lambda: OneCoinWorkers(7, 3))
    members: Population = field(default_factory=lambda: OneCoinWorkers(18, 2))

    def __post_init__(self) -> None:
        _check_own(self.source)
        _check_own(self.members)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw the matrices with which the workers report the opinion."""
        return self.members.sample(n_workers, n_classes, rng)

    def rewrite(self, draft: Draft, members: Codes, rng: np.random.Generator) -> None:
        """Draw the group's opinions, and the members' labels given these."""
        K = draft.confusion.shape[1]
        source = self.source.sample(1, K, rng)[0]
        truth = draft.truth.astype(np.int64)
        opinion = CumulativeTable(source).search(truth, rng.random(truth.size))
        rows = draft.rows_of(members)
        place = np.zeros(draft.draws_alone.size, dtype=np.int64)
        place[members] = np.arange(members.size)
        row = place[draft.worker[rows]] * K + opinion[draft.task[rows]]
        reports = CumulativeTable(draft.confusion[members])
        draft.label[rows] = reports.search(row, rng.random(rows.size))
        draft.confusion[members] = source @ draft.confusion[members]
