r"""Symmetric non-negative factorisation of the matrix of all pair tables.

With :math:`H_j = \theta_j^T diag(\sqrt\pi)`, (labels, classes), every table is
:math:`R_{jj'} = H_j H_{j'}^T`: the tables are blocks of one symmetric matrix of rank K. Its
diagonal blocks are never observed; others are missing where workers share no tasks.

There are two ways to estimate a factor :math:`U = H Q^T`, up to an orthogonal matrix Q:

* :func:`fitted_factor`: least squares over the observed blocks. Memory grows with the pairs.
* :func:`imputed_factor`: fill in the missing blocks through third workers,
  :math:`R_{mn} = R_{mb} R_{ab}^{-1} R_{an}`, and take the leading eigenvectors.

Then :func:`nonnegative_rotation` finds the Q under which :math:`U Q` is non-negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    PairMethod,
    start_from,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments

REFERENCES = 200  # pairs of third workers used to impute missing blocks
FULL_RANK = 1e-3  # smallest ratio of singular values of a block that is inverted
SMALL_ROW = 1e-3  # rows shorter than this share of the longest are ignored
ROTATIONS = 2000  # maximum number of alternations
SETTLED = 1e-12  # change of a rotation that counts as converged
EQUAL = 1e-9  # relative difference of residuals that counts as a tie
RIDGE = 1.0  # weight of the start, in shared tasks; it fixes what sparse tables leave open


class Factor(NamedTuple):
    """Blocks (J, L, K) of U, the number of iterations, and whether they converged."""

    blocks: Floats
    n_iter: int
    converged: bool


def fitted_factor(
    pairs: PairMoments,
    start: Floats,
    *,
    max_iter: int = 1000,
    tol: float = 1e-12,
    ridge: float = 0.0,
) -> Factor:
    r"""Return the factor of least :math:`\sum n_{jj'} \| R_{jj'} - U_j U_{j'}^T \|^2`.

    Parameters
    ----------
    start : (n_workers, K, K)
        Blocks :math:`U_j` (labels, classes), such as the soft vote's :math:`H_j`.
    max_iter, tol : int, float
        Maximum number of quasi-Newton iterations, and the gradient that counts as converged.
    ridge : float
        Weight, in shared tasks, of the penalty :math:`\sum_j \| U_j - U_j^{start} \|^2`. Without
        it, tables of few shared tasks leave directions in which the fit drifts without end.
    """
    from scipy.optimize import minimize

    shape = start.shape
    total = max(float(pairs.n_shared.sum()), 1e-300)
    weight, hold = (pairs.n_shared / total)[:, None, None], ridge / total
    # Workers with many tables have steep coordinates: rescale them to similar curvature.
    degree = pairs.sum_by_worker(weight[:, 0, 0], weight[:, 0, 0])
    unit = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))[:, None, None]

    def misfit(flat: Floats) -> tuple[float, Floats]:
        blocks = unit * flat.reshape(shape)
        one, two = blocks[pairs.first], blocks[pairs.second]
        gap = one @ two.transpose(0, 2, 1) - pairs.tables
        pull = weight * gap
        away = hold * (blocks - start)
        slope = pairs.sum_by_worker(pull @ two, pull.transpose(0, 2, 1) @ one) + away
        value = 0.5 * float(np.sum(pull * gap) + np.sum(away * (blocks - start)))
        return value, (unit * slope).ravel()

    found = minimize(
        misfit, (start / unit).ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": 30, "gtol": tol,
                 "ftol": 0.0},
    )  # fmt: skip
    return Factor(unit * found.x.reshape(shape), int(found.nit), int(found.nit) < max_iter)


def imputed_factor(pairs: PairMoments) -> Factor:
    """Return the factor from leading eigenvectors of the matrix with missing blocks imputed.

    Each connected component of the crowd has its own matrix. Signs of eigenvectors are arbitrary,
    as is the basis of equal eigenvalues, so the factor is rotated so that workers are right most
    often.
    """
    from scipy.linalg import eigh

    J, K = pairs.n_workers, pairs.n_classes
    whole = imputed_blocks(pairs)
    blocks = np.zeros((J, K, K))
    for members in _groups(pairs.parts()[0]):
        size = len(members) * K
        matrix = whole[np.ix_(members, members)].transpose(0, 2, 1, 3).reshape(size, size)
        values, vectors = eigh(0.5 * (matrix + matrix.T), subset_by_index=(size - K, size - 1))
        own = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(-1, K, K)
        blocks[members] = own @ _nearest_orthogonal(own.sum(axis=0).T)
    return Factor(blocks, 1, True)


def _groups(part: Ints) -> list[NDArray[np.intp]]:
    """Return the workers of each component that has more than one."""
    order = np.argsort(part, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
    return [members for members in groups if len(members) > 1]


def imputed_blocks(pairs: PairMoments) -> Floats:
    r"""Return all blocks (J, J, K, K), with the missing ones imputed through third workers.

    :math:`R_{mn} = R_{mb} R_{ab}^{-1} R_{an}` holds for any full-rank table of workers ``a`` and
    ``b``. The mean is over the ``REFERENCES`` most stable pairs: those with the largest number of
    shared tasks times squared smallest singular value. Blocks that are still missing are computed
    from imputed blocks. Blocks that no third workers reach are zero.
    """
    J, K = pairs.n_workers, pairs.n_classes
    require_memory(
        3 * 8 * (J * K) ** 2,
        "All blocks of all pairs of workers",
        f"use {parameter('impute', False)}, which needs memory for existing pairs only",
    )
    blocks = np.zeros((J, J, K, K))
    blocks[pairs.first, pairs.second] = pairs.tables
    blocks[pairs.second, pairs.first] = pairs.tables.transpose(0, 2, 1)
    seen = np.zeros((J, J), dtype=bool)
    seen[pairs.first, pairs.second] = seen[pairs.second, pairs.first] = True
    singular = np.linalg.svd(pairs.tables, compute_uv=False)
    steady = np.where(
        singular[:, -1] > FULL_RANK * singular[:, 0], pairs.n_shared * singular[:, -1] ** 2, 0.0
    )
    best = np.argsort(-np.round(steady / max(steady.max(initial=0.0), 1e-300), 9), kind="stable")
    best = best[:REFERENCES]
    best = best[steady[best] > 0]
    for _ in range(3):  # chains of up to three steps
        if seen.all():
            break
        total, mass = np.zeros_like(blocks), np.zeros((J, J))
        for p in best:
            ends = int(pairs.first[p]), int(pairs.second[p])
            for a, b in (ends, ends[::-1]):
                rows, columns = np.flatnonzero(seen[:, b]), np.flatnonzero(seen[a])
                link = blocks[rows, b] @ np.linalg.inv(blocks[a, b])
                through = link[:, None] @ blocks[a, columns][None]
                where = np.ix_(rows, columns)
                total[where] += steady[p] * through
                mass[where] += steady[p]
        new = ~seen & (mass > 0)
        if not new.any():
            break
        blocks[new] = total[new] / mass[new][:, None, None]
        seen |= new
    return blocks


def nonnegative_rotation(blocks: Floats, part: Ints | None = None) -> Floats:
    r"""Return :math:`H = U Q`, clipped at zero, for the best orthogonal Q.

    Each connected component ``part`` (J,) of the crowd has its own Q; by default there is one.
    Alternates :math:`H = \max(U Q, 0)` and the Q nearest to it (Procrustes), which never increases
    :math:`\| H - U Q \|`. There are two starts: no rotation, and the rotation of the extreme rows
    of U onto the axes, which is exact if every class has a label used only for it.
    """
    if part is not None:
        turned = np.zeros_like(blocks)
        for members in _groups(part):
            turned[members] = nonnegative_rotation(blocks[members])
        return turned
    rows = blocks.reshape(-1, blocks.shape[2])
    results = [_alternate(rows, Q) for Q in (np.eye(rows.shape[1]), _extreme_rows(rows))]
    # Ties go to the first, which keeps the order of the start: rounding must not decide.
    best = results[1] if results[1][1] < (1 - EQUAL) * results[0][1] else results[0]
    return np.maximum(rows @ best[0], 0.0).reshape(blocks.shape)


def _alternate(rows: Floats, rotation: Floats) -> tuple[Floats, float]:
    """Return the rotation at which the alternation converges, and its residual."""
    for _ in range(ROTATIONS):
        former = rotation
        rotation = _nearest_orthogonal(rows.T @ np.maximum(rows @ rotation, 0.0))
        if np.abs(rotation - former).max() <= SETTLED:
            break
    return rotation, float(np.sum(np.minimum(rows @ rotation, 0.0) ** 2))


def _nearest_orthogonal(matrix: Floats) -> Floats:
    left, _, right = np.linalg.svd(matrix)
    return np.asarray(left @ right)


def _extreme_rows(rows: Floats) -> Floats:
    """Return the orthogonal matrix nearest to the extreme directions of a cone's rows.

    The rows, scaled to the same component along their mean, fill a simplex. Successive projection
    finds its corners.
    """
    K = rows.shape[1]
    length = np.sqrt(np.sum(rows**2, axis=1))
    mean = rows.sum(axis=0)
    along = rows @ mean
    usable = (length > SMALL_ROW * length.max(initial=0.0)) & (along > 0)
    if np.count_nonzero(usable) < K:
        return np.eye(K)
    points = rows[usable] / along[usable][:, None]
    residual = points.copy()
    corners = np.empty((K, K))
    for k in range(K):
        size = np.sum(residual**2, axis=1)
        at = int(np.argmax(size >= (1 - EQUAL) * size.max()))  # ties go to the first
        corners[k] = points[at]
        norm = float(np.sum(residual[at] ** 2))
        if not norm > 0:
            return np.eye(K)
        residual = residual - np.outer(residual @ residual[at], residual[at]) / norm
    directions = corners / np.sqrt(np.sum(corners**2, axis=1, keepdims=True))
    return _nearest_orthogonal(directions.T)


def parameters_of(blocks: Floats, weight: Any) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    r"""Return confusion (J, K, K), class prior (K,) and the workers whose every row H determines.

    Columns of :math:`H_j` sum to :math:`\sqrt{\pi_k}` for every worker; the class prior comes from
    their mean, weighted by ``weight`` (J,).
    """
    K = blocks.shape[2]
    sums = blocks.sum(axis=1)  # (J, K)
    root = np.average(sums, axis=0, weights=weight) if np.sum(weight) > 0 else np.ones(K)
    prior = root**2 / max(float(np.sum(root**2)), 1e-300)
    known = (sums > 1e-6).all(axis=1)
    confusion = blocks.transpose(0, 2, 1) / np.where(sums > 0, sums, 1.0)[:, :, None]
    return np.where(known[:, None, None], confusion, 1 / K), prior, known


@dataclass(eq=False, repr=False, kw_only=True)
class SymmetricNMF(PairMethod):
    r"""Confusion matrices from one symmetric factorisation of all pair tables.

    .. math::
        R_{jj'} \approx H_j H_{j'}^T, \qquad H_j = \theta_j^T diag(\sqrt\pi) \ge 0

    The fit first finds a factor :math:`U = H Q^T` of any sign, then the Q that makes it
    non-negative.

    Use it when many pairs of workers share no tasks, or as a start for EM that does not depend on
    the vote. Cost per step: O(p K³) for p pairs of workers who share tasks.

    Parameters
    ----------
    impute : bool
        False fits the factor to the observed tables by least squares, weighted by shared tasks.
        True imputes the missing tables through third workers and takes eigenvectors. Imputation
        needs no start, but adds up the noise of three tables and needs memory for all pairs of
        workers. Both are exact in the limit and about as accurate on real crowds. The fit is the
        default because its memory grows only with the observed pairs.
    max_iter, tol : int, float
        Maximum number of quasi-Newton iterations of the least-squares fit, and the gradient that
        counts as converged.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.kinds.classes.families.moments.moment_method.PairMethod`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the factor determines every row of the worker's matrix.

    Notes
    -----
    The fit starts from the soft vote, or from the given start. A small ridge (the weight of one
    shared task) keeps it there in the directions that sparse tables do not determine.

    The alternation for Q never increases the residual. It starts from no rotation and from the
    extreme rows of the factor; the better result is used. The rotation is unique if every class has
    a label that some worker uses only for it.

    The classes are named so that the workers are right most often. For gold labels, unidentified
    workers and zeros, see :mod:`wisecrowd.kinds.classes.families.moments.moment_method`.

    References
    ----------
    S. Ibrahim and X. Fu (2021). Crowdsourcing via annotator co-occurrence imputation and provable
    symmetric nonnegative matrix factorization. ICML, PMLR 139, 4544-4554.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
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

    promises: ClassVar[Tags] = Tags(
        inductive=True, confusion=True, likelihood=True, pooled=True, shardable=True
    )
    footprint = Footprint(label=25.0, cell=38.9, confusion=100.0, pair_table=32.8)
    limits: ClassVar[Limits] = {"impute": Flag()}

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
