"""Coupled factorisation of all pair tables under the Kullback-Leibler divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.base import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameters import check_choice
from wisecrowd.core.problem import Problem
from wisecrowd.families.moment_fit import (
    MomentEstimate,
    PairMethod,
    inner_start,
    start_from,
)
from wisecrowd.families.pair_likelihood import fit_pairs
from wisecrowd.families.successive_projection import multi_spa


@dataclass(eq=False, repr=False, kw_only=True)
class CoupledNMF(PairMethod):
    r"""Confusion matrices that explain the pair tables of all workers at once.

    .. math::
        \min_{\theta, \pi} \sum_{jj'} c_{jj'} KL\big( R_{jj'} \,\|\,
        \theta_j^T diag(\pi) \theta_{j'} \big)

    Use it when each task has few labels but pairs of workers share many tasks, or as a start for
    EM that a poor vote does not spoil. Cost per step: O(p K³) for p pairs of workers who share
    tasks.

    Parameters
    ----------
    weights : "shared" or "equal"
        :math:`c`: the number of shared tasks, which makes this a composite likelihood, or 1 as in
        the paper.
    max_iter, tol : int, float
        Stop after so many steps, or when one lowers the divergence by less than this share of it.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.families.moment_fit.PairMethod`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the worker has tables at all.
    history_ : tuple of float
        Minus the divergence per pair of labels, which never falls.

    Notes
    -----
    Starts from :class:`~wisecrowd.aggregation.multi_spa.MultiSPA`'s estimate, or from the given
    start, mixed with a little of everything since what is zero stays zero. Updates are those of EM
    with a hidden class for every pair: monotone, without a step size, where the paper has mirror
    descent. Identifiable if two disjoint groups of workers have class experts. A divergence of
    nearly zero is no proof that the matrices are the true ones: without strict experts many fit.

    The classes are named so that the workers are right most often. How gold labels, unidentified
    workers and zeros are treated: see :mod:`wisecrowd.families.moment_fit`.

    References
    ----------
    S. Ibrahim, X. Fu, N. Kargas and K. Huang (2019). Crowdsourcing via pairwise co-occurrences:
    identifiability and algorithms. NeurIPS 32, 7847-7857.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> CoupledNMF().fit(CrowdLabels.from_matrix(votes)).labels_
    array([0, 1, 0, 1, 0, 1])
    """

    weights: str = "shared"
    max_iter: int = 5000
    tol: float = 1e-6
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, confusion=True, likelihood=True, pooled=True
    )
    footprint = Footprint(label=42.6, cell=34.0, confusion=100.0, pair_table=34.8)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_choice("weights", self.weights, ("shared", "equal"))

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        pairs = self._pairs(labels, rng)
        first = None if problem.start is not None else multi_spa(pairs, noise=1.0)
        confusion, class_prior = start_from(labels, problem.start, first)
        fit = fit_pairs(
            pairs,
            inner_start(confusion),
            inner_start(class_prior),
            weight=None if self.weights == "shared" else np.ones(pairs.n_pairs),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        return MomentEstimate(
            fit.confusion,
            fit.class_prior,
            np.diff(pairs.partners[0]) > 0,
            pairs.parts()[0],
            pairs,
            n_iter=len(fit.divergence),
            converged=fit.converged,
            history=tuple(-x for x in fit.divergence),
        )
