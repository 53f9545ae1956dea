"""Successive projection on the pair tables of every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.problem import Problem
from wisecrowd.families.moments.moment_method import MomentEstimate, PairMethod
from wisecrowd.families.moments.successive_projection import multi_spa


@dataclass(eq=False, repr=False, kw_only=True)
class MultiSPA(PairMethod):
    r"""Confusion matrices by successive projection: algebra on pair tables, without iterations.

    .. math::
        \frac{R_{jj'}[\cdot, l']}{\sum_l R_{jj'}[l, l']} = \sum_k P(z = k \mid y_{j'} = l')
        \theta_{jk}

    The rows of a worker's confusion matrix are the corners of these points, taken over all partners
    and their labels, if each class has an expert among the partners: a worker with a label that is
    used only for this class.

    Use it when EM needs a start that does not depend on the vote, and every class has experts.
    Cost: O(p K³) for p pairs of workers who share tasks.

    Parameters
    ----------
    noise : float
        Noise tolerance. A corner is the mean of the worker's points within this many times the
        squared distance that chance explains; at 0 it is the farthest point itself.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.families.moments.moment_method.PairMethod`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
        The least-squares fit to all tables, on the simplex.
    identified_ : (n_workers,) bool
        Whether the worker's own points have as many corners as there are classes.

    Notes
    -----
    The order of the classes is found for all workers together: each worker's rows are matched, by
    assignment, to the order that fits the tables with all others best, until nothing changes. The
    classes are named so that the workers are right most often. For gold labels, unidentified
    workers and zeros, see :mod:`wisecrowd.families.moments.moment_method`. The only expert of a
    class is not estimated exactly, because its partners include no expert.

    References
    ----------
    S. Ibrahim, X. Fu, N. Kargas and K. Huang (2019). Crowdsourcing via pairwise co-occurrences:
    identifiability and algorithms. NeurIPS 32, 7847-7857.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> MultiSPA().fit(CrowdLabels.from_matrix(votes)).labels_
    array([0, 1, 0, 1, 0, 1])
    """

    noise: float = 1.0
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        inductive=True, confusion=True, likelihood=True, pooled=True, shardable=True
    )
    footprint = Footprint(label=43.2, cell=30.7, confusion=100.0, pair_table=35.1)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("noise", self.noise, 0.0)

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        pairs = self._pairs(labels, rng)
        return multi_spa(pairs, noise=self.noise)
