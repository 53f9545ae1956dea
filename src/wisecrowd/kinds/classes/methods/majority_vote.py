"""One worker, one vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.footprint import Footprint, bytes_needed
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.families.iterative_vote import Votes


@dataclass(eq=False, repr=False, kw_only=True)
class MajorityVote(Aggregator):
    r"""The class with the most labels; the shares of the votes are the probabilities.

    .. math::
        q_i(k) \propto h_i(k) \Bigl( \sum_{j: y_{ij} = k} w_{ij} + \alpha \Bigr)

    Use it when workers are about equally good, or as the baseline for other methods. Cost:
    O(annotations), once, for any number of classes; memory: 20 to 50 bytes per annotation.

    Parameters
    ----------
    smoothing : float
        Pseudo-count :math:`\alpha` of votes for every class of every task. With 1 and two classes,
        three votes to none give 0.8, not certainty.

    Attributes
    ----------
    probas_ : (n_tasks, n_classes)
        Shares of the votes; tasks without labels have their prior. Dense up to 5·10⁷ numbers.
        Beyond that, sparse (CSR) over the received labels of a task, its gold label, and two tied
        classes if it received none; rows then sum to one minus the share of all other classes.
    worker_accuracy_ : (n_workers,)
        Expected agreement with the vote, :math:`\sum_i q_i(y_{ij}) / n_j`, which includes the
        worker's own vote: optimistic where tasks have few labels, pessimistic where they have many.

    Notes
    -----
    Shares of votes are not a model's posterior: three of five workers give 0.6, however good they
    are. A task prior :math:`h` multiplies them, so that gold labels and impossible classes are
    respected; where all labels of a task are impossible, the prior decides. A tie goes to the class
    that is more common overall, then to the first in class order, and is marked in ``ties_``. A
    start (``init``) has no effect, because nothing is iterated.

    References
    ----------
    J. A. N. de Caritat, Marquis de Condorcet (1785). Essai sur l'application de l'analyse à la
    probabilité des décisions rendues à la pluralité des voix. Imprimerie royale, Paris.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1, 0], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> model = MajorityVote().fit(labels)
    >>> model.probas_
    array([[0.75, 0.25],
           [0.25, 0.75],
           [0.5 , 0.5 ]])
    >>> model.ties_
    array([False, False,  True])
    """

    smoothing: float = 0.0

    promises: ClassVar[Tags] = Tags(inductive=True, online=True, shardable=True)
    footprint = Footprint(label=21.6, task=34.8, dense=10.4)
    limits: ClassVar[Limits] = {"smoothing": Number(0.0)}

    def memory_needed(self, labels: Any) -> int:
        """Return roughly how many bytes a fit takes; the vote is not compared with itself."""
        assert self.footprint is not None
        return bytes_needed(self.footprint, as_crowd_labels(labels), checked=False)

    def _fit(self, problem: Problem) -> Fit:
        votes = Votes(problem, self.smoothing)
        agreement = votes.round(np.ones(problem.data.n_workers), hard=False)
        return Fit(votes.posterior(), votes.share(agreement))

    def _predict(self, problem: Problem) -> Any:
        votes = Votes(problem, self.smoothing)
        votes.round(np.ones(problem.data.n_workers), hard=False)
        return votes.posterior()
