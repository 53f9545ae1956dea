"""Confusion matrices that fit marginals, pairs and triples of labels at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Tags
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_integer
from wisecrowd.core.problem import Problem
from wisecrowd.families.coupled_cpd import coupled_cpd, joint_tables
from wisecrowd.families.moment_fit import ENOUGH, MomentEstimate, PairMethod, vote_confusion
from wisecrowd.families.sparse_posterior import worker_weights
from wisecrowd.families.three_groups import busiest_first, class_shares, unidentified_workers
from wisecrowd.families.triples import TripleMoments, triple_moments

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class CoupledTensor(PairMethod):
    r"""Confusion matrices by coupled tensor decomposition of label tables of up to three workers.

    .. math::
        \min \sum_j c_j \|m_j - \theta_j^\top \pi\|^2
        + \sum_{jj'} c_{jj'} \|R_{jj'} - \theta_j^\top \mathrm{diag}(\pi) \theta_{j'}\|^2
        + \sum_{jj'j''} c_{jj'j''} \Big\| T_{jj'j''} -
        \sum_k \pi_k \theta_{jk} \otimes \theta_{j'k} \otimes \theta_{j''k} \Big\|^2

    with rows of :math:`\theta` and :math:`\pi` probabilities, by alternating ADMM.

    Use it when a few dozen workers share many tasks: triples identify any three workers of full
    rank, with no class expert among them. Cost per round: O(triples × classes⁴).

    Parameters
    ----------
    max_iter : int
        The most rounds over all workers.
    tol : float
        Stop when no probability moves by more than this in a round.
    max_triples : int
        The most triples; see :func:`~wisecrowd.families.triples.triple_moments`. Those count that
        share ``min_shared`` tasks.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.families.moment_fit.PairMethod`; triples are drawn at random where
        there are too many.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the worker is in a triple that counts.
    history_ : tuple of float
        Half the weighted squared misfit after each round; it never rises.

    Notes
    -----
    A table counts with :math:`c`, the weight of the tasks it was counted on; in the paper all count
    the same, as here if everybody labels everything. It starts from the confusion matrices of the
    soft vote, or of ``init``. Classes are named so that workers are right as often as possible.
    Without any triple that counts the pairs are fitted alone, which need not determine the
    matrices, and a warning says so.

    References
    ----------
    P. A. Traganitis, A. Pagès-Zamora and G. B. Giannakis (2018). Blind multiclass ensemble
    classification. IEEE Transactions on Signal Processing 66(18), 4737-4752.

    Examples
    --------
    >>> from wisecrowd.simulate import OneCoinWorkers, crowd
    >>> made = crowd(400, 6 * OneCoinWorkers(8, 2), class_prior=[0.6, 0.4], random_state=0)
    >>> model = CoupledTensor().fit(made.labels)
    >>> bool(np.abs(model.worker_accuracy_ - made.worker_accuracy).mean() < 0.05)
    True
    """

    max_iter: int = 200
    tol: float = 1e-4
    max_triples: int = 20_000
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(inductive=True, likelihood=True, confusion=True)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("max_triples", self.max_triples, 1)

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        J, K = labels.n_workers, labels.n_classes
        pairs = self._pairs(labels, rng)
        triples = self._triples(labels, rng)
        start = vote_confusion(labels, problem.start)
        fit = coupled_cpd(
            joint_tables(pairs, triples, worker_weights(labels)),
            start,
            class_shares(labels, np.zeros(K)),
            max_iter=self.max_iter,
            tol=self.tol,
            order=busiest_first(labels),
        )
        identified = np.zeros(J, dtype=bool)
        identified[triples.workers.ravel()] = True
        lacking = (worker_weights(labels) > 0) & ~identified
        findings = unidentified_workers(labels, lacking, "are in no triple that counts")
        if not triples.n_triples:
            identified[pairs.first] = identified[pairs.second] = True
        part, _ = pairs.parts()
        return MomentEstimate(
            fit.confusion,
            fit.class_prior,
            identified,
            part,
            pairs,
            n_iter=len(fit.history),
            converged=fit.converged,
            history=fit.history,
            findings=findings + triples.findings,
        )

    def _triples(self, labels: CrowdLabels, rng: np.random.Generator) -> TripleMoments:
        """Return the triples that share enough tasks or, by default, all if none shares enough."""
        n = min(self.max_triples, labels.n_workers**3 // 6 + 1)
        require_memory(
            48 * n * labels.n_classes**3,
            f"{n} joint tables of three workers",
            "lower max_triples, or use multispa, which needs pairs only",
        )
        wanted = [self.min_shared]
        if isinstance(self.min_shared, str):
            wanted = [ENOUGH * labels.n_classes, labels.n_classes]
        for least in wanted:
            found = triple_moments(labels, min_shared=least, max_triples=self.max_triples, rng=rng)
            if found.n_triples:
                break
        return found
