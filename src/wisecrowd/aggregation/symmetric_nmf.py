"""Symmetric non-negative factorisation of the matrix of all pair tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.base import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameters import check_flag
from wisecrowd.core.problem import Problem
from wisecrowd.families.moment_fit import (
    MomentEstimate,
    PairMethod,
    start_from,
)
from wisecrowd.families.symmetric_factors import (
    fitted_factor,
    imputed_factor,
    nonnegative_rotation,
    parameters_of,
)

RIDGE = 1.0  # shared tasks that the start counts for: what sparse tables leave open stays there


@dataclass(eq=False, repr=False, kw_only=True)
class SymmetricNMF(PairMethod):
    r"""Confusion matrices from one symmetric factorisation of all pair tables.

    .. math::
        R_{jj'} \approx H_j H_{j'}^T, \qquad H_j = \theta_j^T diag(\sqrt\pi) \ge 0

    First a factor :math:`U = H Q^T` of any sign, then the orthogonal Q that makes it non-negative.

    Use it when many pairs of workers share no tasks, or as a start for EM that a poor vote does
    not spoil. Cost per step: O(p K³) for p pairs of workers who share tasks.

    Parameters
    ----------
    impute : bool
        False fits the factor to the tables that were seen, by least squares weighted with the
        shared tasks. True fills in the missing ones through third workers and takes eigenvectors:
        algebra without a start, but it adds up the noise of three tables and needs memory for all
        pairs of workers. Both are exact in the limit and about as accurate on real crowds; the fit
        is the default because its memory grows with the pairs that exist only.
    max_iter, tol : int, float
        Of the least-squares fit: steps of the quasi-Newton method, and the gradient that ends it.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.families.moment_fit.PairMethod`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the factor says something of every row of the worker's matrix.

    Notes
    -----
    The fit starts from the soft vote, or from the given start, and a small ridge (the weight of one
    shared task) holds it there in the directions that sparse tables do not determine.

    The alternation for Q never gets worse; it starts from no rotation and from the extreme rows of
    the factor, and the better one counts. The rotation is unique if every class has a label that
    some worker uses for it alone.

    The classes are named so that the workers are right most often. How gold labels, unidentified
    workers and zeros are treated: see :mod:`wisecrowd.families.moment_fit`.

    References
    ----------
    S. Ibrahim and X. Fu (2021). Crowdsourcing via annotator co-occurrence imputation and provable
    symmetric nonnegative matrix factorization. ICML, PMLR 139, 4544-4554.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> SymmetricNMF().fit(CrowdLabels.from_matrix(votes)).labels_
    array([0, 1, 0, 1, 0, 1])
    """

    impute: bool = False
    max_iter: int = 1000
    tol: float = 1e-10
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(inductive=True, confusion=True, likelihood=True, pooled=True)
    footprint = Footprint(label=25.0, cell=38.9, confusion=100.0, pair_table=32.8)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_flag("impute", self.impute)

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        pairs = self._pairs(labels, rng)
        if self.impute:
            factor = imputed_factor(pairs)
        else:
            confusion, class_prior = start_from(labels, problem.start, None)
            start = confusion.transpose(0, 2, 1) * np.sqrt(class_prior)
            factor = fitted_factor(pairs, start, max_iter=self.max_iter, tol=self.tol, ridge=RIDGE)
        part, _ = pairs.parts()
        shared = pairs.sum_by_worker(pairs.n_shared, pairs.n_shared)
        rotated = nonnegative_rotation(factor.blocks, part)
        confusion, class_prior, known = parameters_of(rotated, shared)
        return MomentEstimate(
            confusion,
            class_prior,
            known & (shared > 0),
            part,
            pairs,
            n_iter=factor.n_iter,
            converged=factor.converged,
        )
