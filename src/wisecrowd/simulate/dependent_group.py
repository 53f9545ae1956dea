"""Workers who report one hidden opinion, such as colleagues or models of one kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from wisecrowd.inference.label_law import CumulativeTable
from wisecrowd.simulate._checks import Codes, Floats
from wisecrowd.simulate.base import DependentPopulation, Population
from wisecrowd.simulate.copiers import _check_own
from wisecrowd.simulate.drawing import Draft
from wisecrowd.simulate.one_coin import OneCoinWorkers


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
