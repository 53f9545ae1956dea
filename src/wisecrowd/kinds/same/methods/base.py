"""Base of the methods for sameness: predictions of votes, tables and findings, written once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import Count, Limits, check_integer
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.same.answers import ClusterAnswers, most_probable
from wisecrowd.kinds.same.container import ANSWERS, CrowdSame
from wisecrowd.kinds.same.methods.mean_field import (
    ClusterModel,
    ClusterRun,
    SameVotes,
    component_count,
    numbered_by_size,
)

MOST_CLUSTERS = 1000
USUAL_SWEEPS = 30  # passes over the votes that a run takes
NEAR = 10.0  # difference of objectives, in nats, that does not justify another cluster,
NEAR_PER_ITEM = 0.05  # of at most this for each item: few items cannot gain 10 nats by a cluster
SAME_OPTIMUM = 1e-6  # relative difference of objectives that counts as none
DEPENDENCE = 0.1  # of the votes of an item, in the probabilities of its clusters
LEAD = 1e-6  # of the model's cluster, where dependence would give the item another one


class SameMethod(Aggregator):
    """A method for sameness; subclasses define ``_runs`` and have the attributes below.

    ``predict_proba(votes)`` gives the probabilities of "different" and "same" as the worker's
    answer, and ``score(votes)`` the mean logarithm of the probability of the actual answers.
    """

    takes: ClassVar[str] = "same"
    promises: ClassVar[Tags] = Tags(inductive=False, likelihood=True)
    saves: ClassVar[dict[str, Saved]] = {
        "cluster_share_": SavedArray("*", "distribution"),
        "common_rates_": SavedArray("2", "probability"),
        "curve_": SavedArray("* 3"),
        "model_probas_": SavedArray("A *", "distribution"),
    }

    n_clusters: Any
    max_clusters: int
    n_init = 1  # runs for one number of clusters
    strength = 0.0  # votes at the common rates that are added to those of every worker

    limits: ClassVar[Limits] = {"max_clusters": Count(2, MOST_CLUSTERS)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if self.n_clusters != "auto":
            check_integer('n_clusters (else "auto")', self.n_clusters, 1, MOST_CLUSTERS)

    def _saved_fault(self) -> str:
        same = self.model_probas_.shape == self.item_probas_.shape
        return "" if same else "model_probas_ do not fit item_probas_"

    def _runs(
        self, model: ClusterModel, n_clusters: int, problem: Problem[CrowdSame, None]
    ) -> list[ClusterRun]:
        """Return the local optima that the starts lead to."""
        raise TypeError(f"{type(self).__name__} must define _runs.")

    def _more_runs(
        self, model: ClusterModel, n_clusters: int, problem: Problem[CrowdSame, None]
    ) -> list[ClusterRun]:
        """Return further local optima for the chosen number of clusters."""
        return []

    def _fit(self, problem: Problem[CrowdSame, None]) -> Fit:
        votes = SameVotes.of(problem.data)
        if not len(votes.left):
            raise DataError("No vote has a positive weight; give some votes a weight.")
        if self.n_clusters == "auto":  # up to half of the items
            sizes = range(2, max(2, min(self.max_clusters, len(votes.order) // 2)) + 1)
        else:
            sizes = range(self.n_clusters, self.n_clusters + 1)
        work = len(votes.left) * len(sizes) * self.n_init * USUAL_SWEEPS
        model = ClusterModel(votes, self.strength, kernels_for("same_clusters", work))
        runs = {size: self._runs(model, size, problem) for size in sizes}
        best = np.array([max(run.objective for run in runs[size]) for size in sizes])
        curve = size_curve(np.array(sizes, dtype=np.float64), best, len(votes.order))
        near = min(NEAR, NEAR_PER_ITEM * len(votes.order))
        chosen = int(curve[np.argmax(curve[:, 2] >= curve[:, 2].max() - near), 0])
        found = [*runs[chosen], *self._more_runs(model, chosen, problem)]
        return self._result(problem.data, model, averaged(found), curve)

    def _result(self, data: CrowdSame, model: ClusterModel, run: ClusterRun, curve: Floats) -> Fit:
        votes, q = model.votes, numbered_by_size(model.votes, run.q)
        share = np.sort(run.share)[::-1]
        q[votes.without_votes] = share
        together = model.together(q)
        right = votes.worker_sums(np.where(votes.same, together, 1 - together))
        seen = votes.worker_sums(np.ones(len(together)))
        accuracy = (right + 1) / (seen + 2)
        same_rate, different_rate = run.rates.means()
        claimed = careful_posterior(q, share, votes.degree)
        return Fit(
            ClusterAnswers(claimed, *_task_values(data, claimed)),
            worker_accuracy=accuracy,
            worker_accuracy_error=np.sqrt(accuracy * (1 - accuracy) / (seen + 3)),
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            findings=_findings(model, run),
            extra={
                "same_rate": same_rate, "different_rate": different_rate,
                "common_rates": run.rates.common, "cluster_share": share, "curve": curve,
                "model_probas": q,
            },
        )  # fmt: skip

    # ------------------------------------------------------------------------------- predictions

    def _vote_probas(self, data: CrowdSame) -> Floats:
        """Return the probabilities (n_annotations, 2) of "different" and "same"."""
        q = self.model_probas_
        together = np.clip((q[data.left] * q[data.right]).sum(axis=1), 0.0, 1.0)
        s, t = (
            np.append(own, common)[data.worker]
            for own, common in zip(
                (self.same_rate_, self.different_rate_), self.common_rates_, strict=True
            )
        )
        says_same = s * together + (1 - t) * (1 - together)
        return np.stack([1 - says_same, says_same], axis=1)

    def _known_votes(self, labels: Any, task_prior: Any, gold: Any) -> CrowdSame:
        self._require_fitted()
        kind = self._kind()
        known: CrowdSame = kind.gate(labels).in_fitted_ids(self, stacklevel=4)
        kind.prior(task_prior, gold, known)
        return known

    def predict_proba(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> Floats:
        """Return the probabilities (n_annotations, 2) that a worker says "different" and "same".

        The answers of the votes are not used. Rows are sorted by task and worker, as those of
        ``CrowdSame``. Workers that the fit has not seen have the common rates.
        """
        return self._vote_probas(self._known_votes(labels, task_prior, gold))

    def predict(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> NDArray[Any]:
        """Return the most probable answer to each vote: "different" or "same"."""
        probas = self._vote_probas(self._known_votes(labels, task_prior, gold))
        return np.asarray(np.array(ANSWERS, dtype=object)[probas.argmax(axis=1)])

    def _log_likelihood(self, problem: Problem[CrowdSame, None]) -> float:
        data = problem.data
        probas = self._vote_probas(data)
        chosen = probas[np.arange(len(probas)), data.outcome]
        return float(data.weights @ np.log(np.maximum(chosen, 1e-300)))

    def _known_answers(self, data: Annotations) -> ClusterAnswers:
        return ClusterAnswers.of_fit(vars(self), np.arange(0))

    def item_table(self, library: str | None = None) -> Any:
        """Return a frame, one row per item: cluster, probability, margin, number of votes.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The default is the library of the input, as in ``worker_table``.
        """
        self._require_fitted()
        return self._as_frame(ClusterAnswers.item_columns(vars(self)), library)


def size_curve(sizes: Floats, objective: Floats, n_items: int) -> Floats:
    """Return (n_sizes, 3): numbers of clusters, objectives, and what the choice compares.

    The objective is that of one numbering of the clusters. All K! numberings explain the votes
    equally well, and the evidence is the sum over them.
    """
    from scipy.special import gammaln

    penalty = 0.5 * (sizes - 1.0) * np.log(n_items) - gammaln(sizes + 1.0)
    return np.stack([sizes, objective, objective - penalty], axis=1)


def careful_posterior(q: Floats, share: Floats, n: Floats) -> Floats:
    r"""Return the posterior of items if their n votes count as n / (1 + 0.1 (n - 1)).

    .. math::
        p_{ak} \propto \pi_k (q_{ak} / \pi_k)^{1 / (1 + 0.1 (n_a - 1))}

    Items keep the most probable cluster of the model: others come up to it at most.

    Parameters
    ----------
    q : (n_items, n_clusters)
    share : (n_clusters,)
        Shares of clusters, which stand for no votes.
    n : (n_items,)
        Weight of the votes of each item.
    """
    prior = np.log(share)
    heat = 1 + DEPENDENCE * np.maximum(n - 1, 0.0)
    logs = prior + (np.log(np.maximum(q, 1e-300)) - prior) / heat[:, None]
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    first = most_probable(q)[:, None]
    top = np.take_along_axis(found, first, axis=1)
    others = np.arange(q.shape[1]) != first
    found = np.where(others, np.minimum(found, top * (1 - LEAD)), found)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def averaged(runs: list[ClusterRun]) -> ClusterRun:
    """Return the best run, with the posterior averaged over runs that are nearly as good.

    Several local optima explain the votes about equally well, and each of them is too certain. A
    run that is 10 nats worse than the best one has the weight 1/e.
    """
    from scipy.optimize import linear_sum_assignment

    # Equal up to rounding: the first one is the best.
    top = max(run.objective for run in runs)
    best = next(run for run in runs if run.objective >= top - SAME_OPTIMUM * abs(top))
    q, total = np.zeros_like(best.q), 0.0
    for run in runs:
        weight = float(np.exp(min((run.objective - best.objective) / NEAR, 0.0)))
        _, match = linear_sum_assignment(-(best.q.T @ run.q))
        q += weight * run.q[:, match]
        total += weight
    return best._replace(q=q / total)


def _task_values(data: CrowdSame, q: Floats) -> tuple[Floats, Floats]:
    """Return P(same) and the share of votes for "same" of each task, as weighted means."""
    pair = np.clip((q[data.left] * q[data.right]).sum(axis=1), 0.0, 1.0)
    total = np.bincount(data.task, data.weights, data.n_tasks)
    found = []
    for values in (pair, data.is_same.astype(np.float64)):
        sums = np.bincount(data.task, data.weights * values, data.n_tasks)
        mean = np.where(total > 0, sums / np.where(total > 0, total, 1.0), 0.5)
        found.append(np.clip(mean, 0.0, 1.0))
    return found[0], found[1]


def _findings(model: ClusterModel, run: ClusterRun) -> tuple[Finding, ...]:
    found, votes, q = [], model.votes, run.q
    n_parts, _ = component_count(votes)
    if n_parts > 1:
        found.append(Finding(
            "separate-parts", "medium", float(n_parts), (),
            f"The votes form {n_parts} parts, and no vote compares items of different parts: "
            "clusters with the same number in different parts need not be the same.",
            "Ask about pairs of items from different parts.",
        ))  # fmt: skip
    if q.shape[1] > 1 and model.alone().objective >= run.objective:
        found.append(Finding(
            "no-clusters", "high", float(np.mean(q[votes.order].max(axis=1))), (),
            "The votes are explained as well without clusters: either all items are the same, or "
            "the answers do not depend on the items. The score is the mean probability of the "
            "clusters.",
            "Collect more votes per item, or check that workers understand the question.",
        ))  # fmt: skip
    return tuple(found)
