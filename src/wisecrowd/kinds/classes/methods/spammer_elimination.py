"""Dawid-Skene EM that detects and excludes spammers, after Raykar and Yu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.priors import pseudo_counts
from wisecrowd.kinds.classes.container import labelled_by_several
from wisecrowd.kinds.classes.families.confusion import ConfusionEM
from wisecrowd.kinds.classes.methods.dawid_skene import WorkerConfusionModel, dirichlet_update
from wisecrowd.kinds.classes.shards import Shard


class ComparableLabels(NamedTuple):
    """Additive: labels (J,) of each worker on tasks that others labelled too, or with gold."""

    counts: Floats


@dataclass(frozen=True, eq=False)
class Comparison:
    """Counts labels that can be compared: all of them if there is a task ``prior``."""

    n_workers: int
    prior: bool

    def begin(self, shard: Shard) -> None:
        """Return nothing: there is no state."""

    def local_step(self, shard: Shard, state: None, params: None) -> tuple[None, ComparableLabels]:
        """Return the comparable labels of each worker in one shard."""
        telling = labelled_by_several(shard)
        known = np.isfinite(shard.prior_rows).sum(axis=1) == 1  # gold
        telling |= self.prior | known[0 if shard.prior_index is None else shard.prior_index]
        counted = np.repeat(telling, np.diff(shard.indptr))
        counts = np.bincount(shard.worker[counted], minlength=self.n_workers)
        return None, ComparableLabels(counts.astype(np.float64))


@dataclass(frozen=True, eq=False, kw_only=True)
class SpammerEliminationModel(WorkerConfusionModel):
    """Confusion matrices with pseudo-counts ``alpha``; spammers have one row for all classes.

    Only workers who are ``comparable`` (n_workers,) with others, or with gold, can be spammers.
    """

    alpha: Floats
    evidence: float
    comparable: NDArray[np.bool_]

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the M-step, with equal rows for workers whose labels that explains better."""
        pooled = counts.sum(axis=1, keepdims=True)
        pooled_alpha = self.alpha.mean(axis=-2, keepdims=True)
        at_random = dirichlet_evidence(pooled, np.broadcast_to(pooled_alpha, pooled.shape))
        by_task = dirichlet_evidence(counts, np.broadcast_to(self.alpha, counts.shape))
        factor = at_random - by_task
        spammer = (factor > np.log(self.evidence)) & (counts.shape[1] > 1) & self.comparable
        log_confusion, _ = dirichlet_update(counts, self.alpha)
        log_prior = float((self.alpha * log_confusion)[~spammer].sum())
        common, _ = dirichlet_update(pooled, pooled_alpha)
        log_prior += float((pooled_alpha * common)[spammer].sum())
        log_confusion[spammer] = np.broadcast_to(common, log_confusion.shape)[spammer]
        return log_confusion, log_prior, {"spammer": spammer, "spammer_evidence": factor}


@dataclass(eq=False, repr=False, kw_only=True)
class SpammerElimination(ConfusionEM):
    r"""Dawid and Skene's model in which some workers answer at random and are left out.

    .. math::
        \theta_{jk\cdot} \sim Dir(\alpha_k) \text{ for each } k, \qquad \text{or} \qquad
        \theta_{j1\cdot} = \dots = \theta_{jK\cdot} \sim Dir(\bar\alpha)

    The rows of a spammer's confusion matrix are equal. Every iteration compares the evidence for
    either kind of worker, with the matrix integrated out. A worker who is ``evidence`` times
    likelier to answer at random is eliminated: the labels get zero weight, until they fit those of
    the others again. A worker who shares no task with another is never left out.

    Use it when some workers answer at random, and you want to know which. Cost per iteration:
    O(annotations × classes); memory: workers × classes².

    Parameters
    ----------
    evidence : float
        Bayes factor in favour of random labels above which a worker is left out; at least one.
    prior : "weak", None, number, (n_classes, n_classes) array or prior object
        Pseudo-counts :math:`\alpha`, as in :class:`DawidSkene`; a spammer's are the mean over the
        true classes.
    class_prior, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.kinds.classes.families.confusion.ConfusionEM`.

    Attributes
    ----------
    spammer_ : (n_workers,) bool
        Whether the worker's labels were left out.
    spammer_evidence_ : (n_workers,)
        Log Bayes factor of random labels against labels that depend on the task.
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)

    Notes
    -----
    Raykar and Yu shrink the rows towards each other by a Gaussian prior on their distance, for two
    classes at a time. Its precision is estimated by Laplace's approximation to the evidence, and
    diverges for spammers. This class compares only the two extremes, zero and infinite precision,
    by the exact evidence, which is valid for workers with few labels and for any number of classes.

    References
    ----------
    V. C. Raykar and S. Yu (2012). Eliminating spammers and ranking annotators for crowdsourced
    labeling tasks. Journal of Machine Learning Research 13, 491-518.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(900, 6 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers())
    >>> SpammerElimination().fit(crowd.labels).spammer_
    array([False, False, False, False, False, False,  True,  True])
    """

    evidence: float = 3.0
    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "spammer_": SavedArray("J", "flag"),
        "spammer_evidence_": SavedArray("J"),
    }
    promises: ClassVar[Tags] = Tags(
        inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.0, task=15.7, cell=10.4, confusion=64.1)
    limits: ClassVar[Limits] = {"evidence": Number(1.0)}

    def _model(self, problem: Problem) -> SpammerEliminationModel:
        alpha = pseudo_counts(self.prior, problem.data)
        comparison = Comparison(problem.data.n_workers, problem.prior.given)
        shards = problem.cut(problem.data.n_workers)
        _, found = shards.map_reduce(comparison, "local_step", shards.begin(comparison), None)
        return SpammerEliminationModel(
            **self._shape(problem),
            alpha=alpha,
            evidence=float(self.evidence),
            comparable=found.counts > 0,
        )


def dirichlet_evidence(counts: Floats, alpha: Floats) -> Floats:
    r"""Return the log probability (J,) of label sequences, with Dirichlet rows integrated out.

    .. math::
        \sum_k \log \frac{\Gamma(A_k)}{\Gamma(A_k + n_k)} + \sum_{k, l} \log
        \frac{\Gamma(\alpha_{kl} + c_{kl})}{\Gamma(\alpha_{kl})}

    Rows without any pseudo-counts get one per label, because evidence needs a proper prior.

    Examples
    --------
    Two equal labels in a row, from a uniform prior over two: 1/2, then 2/3.

    >>> float(np.exp(dirichlet_evidence(np.array([[[2.0, 0.0]]]), np.ones((1, 1, 2)))[0]).round(6))
    0.333333
    """
    from scipy.special import gammaln

    empty = alpha.sum(axis=2, keepdims=True) <= 0
    alpha = np.maximum(np.where(empty, 1.0, alpha), 1e-10)
    total = alpha.sum(axis=2)
    rows = gammaln(total) - gammaln(total + counts.sum(axis=2))
    cells = gammaln(alpha + counts) - gammaln(alpha)
    return np.asarray(rows.sum(axis=1) + cells.sum(axis=(1, 2)))
