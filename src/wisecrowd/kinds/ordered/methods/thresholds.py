"""Thresholds: one two-class problem per cut between ordered classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import with_class_prior
from wisecrowd.kinds.classes.families.wrapped_method import BinaryReduction, as_dense, two_classes
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.kinds.classes.worker_errors import worker_evidence
from wisecrowd.kinds.ordered.methods.base import OrderedMethod


@dataclass(eq=False, repr=False, kw_only=True)
class Thresholds(OrderedMethod, BinaryReduction):
    r"""One two-class problem per cut, "above the cut" or not, by any method for classes.

    .. math::
        S_{ik} = p_k(z_i > k), \qquad
        \hat S_i = \arg\min_{s_1 \ge \dots \ge s_{K-1}} \sum_k (s_k - S_{ik})^2, \qquad
        p(z_i = k) = \tilde S_{i, k-1} - \tilde S_{ik}

    with :math:`p_k` the method's posterior when labels count as above the cut ``k`` or not,
    :math:`\tilde S_{i0} = 1, \tilde S_{iK} = 0`, and between them :math:`\tilde S = d + (1 - 2 d)
    \hat S`. The doubt :math:`d = 1 / (2 N + 4)` keeps ``N`` tasks from showing that a class is
    certain; a doubt of the method itself, such as that of "auto", is left out.

    Use it when classes are ordered, such as grades: a label close to the truth then counts for
    most cuts. Cost: that of the method, times the number of cuts.

    Parameters
    ----------
    method : method or its name
        The two-class method; "auto" chooses one for each cut by held-out labels and pools it with
        two votes, which is more honest about the confidence than Dawid-Skene. Set its own
        parameters as ``method__tol`` and so on.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Prior of the classes; "auto" leaves it to the method, which estimates the share above each
        cut.
    decide : {"median", "mode", "mean"}
        Label of a task: the median of its posterior minimises the mean absolute error, the mode the
        number of errors, and the rounded mean the squared error.

    Attributes
    ----------
    methods_ : list of fitted methods, one per cut
    sensitivity_, specificity_ : (n_workers, n_classes - 1)
        Probability that the worker puts a task above a cut if it is above, and not above if it is
        not.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior, 1 / n_classes for workers without
        labels; with two classes, the method's own estimate.
    doubt_ : float
        :math:`d`; missing with two classes.
    class_prior_ : (n_classes,)
        Computed from the methods' shares above each cut, if they have them.

    Notes
    -----
    The fits are separate, so that :math:`S_{i1} \ge S_{i2} \ge \dots` does not hold for all tasks:
    with Dawid-Skene it fails for most. Isotonic regression (pool adjacent violators) finds the
    nearest sequence that does; classes between pooled cuts have probability 0. Gold, task priors
    and starts are passed on, summed above and below each cut. With two classes this is the method
    itself. Sensitivities of methods without confusion matrices are expected shares under the
    posterior, with one pseudo-label of each kind.

    Weights count as the method of the cuts counts them. The default judges each label without its
    own contribution, so that a row twice at half the weight is not the same as the row: its twin
    supports it.

    References
    ----------
    V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni and L. Moy (2010). Learning
    from crowds. Journal of Machine Learning Research 11, 1297-1322.

    E. Frank and M. Hall (2001). A simple approach to ordinal classification. ECML, 145-156.

    Examples
    --------
    >>> labels = [[1, 1, 2], [2, 2, 1], [3, 3, 3], [3, 2, 3], [1, 1, 1], [2, 2, 2]]
    >>> Thresholds().fit(labels).labels_
    array([1, 2, 3, 3, 1, 2])
    >>> Thresholds("one-coin").set_params(method__max_iter=7)
    Thresholds(method=OneCoin(max_iter=7))
    """

    method: Any = field(default="auto", kw_only=False)

    saves: ClassVar[dict[str, Saved]] = {
        "sensitivity_": SavedArray("J cuts", "probability"),
        "specificity_": SavedArray("J cuts", "probability"),
        "doubt_": SavedValue(
            lambda value: isinstance(value, float) and 0 < value <= 0.25,
            "a number between 0 and 1/4",
            optional=lambda method: len(method.classes_) <= 2,
        ),
    }
    footprint = Footprint(cell=80.0)

    @staticmethod
    def _n_problems(n_classes: int) -> int:
        return max(n_classes - 1, 1)

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {**super()._axis_sizes(sizes), "cuts": max(sizes["K"] - 1, 0)}

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        problem = with_class_prior(problem, self.class_prior)
        labels = problem.data
        parts = [self._fit_one(cut) for cut in _problems(problem)]
        results = [result for _, result in parts]
        rates = _rates(labels, results)
        extra = {"methods": [fitted for fitted, _ in parts], **rates}
        if labels.n_classes <= 2:
            (result,) = results
            answers = self._answers(as_dense(result.probas))
            return replace(result, answers=answers, extra={**result.extra, **extra})
        # The rule of succession, with half a task more on either side of each cut.
        doubt = 0.5 / (np.count_nonzero(labels.labels_per_task) + 2)
        extra["doubt"] = float(doubt)
        cuts = [_undoubted(one.probas, one.extra.get("doubt", 0.0)) for one in results]
        probas = _between_cuts(cuts, problem.prior, doubt)
        return Fit(
            self._answers(probas),
            worker_evidence(labels, probas).mean_right,
            class_prior=_class_shares([result.class_prior for result in results]),
            n_iter=max(result.n_iter for result in results),
            converged=all(result.converged for result in results),
            findings=tuple(
                _at_cut(one, label)
                for label, result in zip(labels.classes[:-1].tolist(), results, strict=True)
                for one in result.findings
            ),
            extra=extra,
        )

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        problem = with_class_prior(problem, self.class_prior)
        parts = [
            fitted._predict(cut)
            for fitted, cut in zip(self.methods_, _problems(problem), strict=True)
        ]
        if problem.data.n_classes <= 2:
            return self._answers(as_dense(parts[0]))
        doubts = [getattr(fitted, "doubt_", 0.0) for fitted in self.methods_]
        cuts = [_undoubted(part, doubt) for part, doubt in zip(parts, doubts, strict=True)]
        return self._answers(_between_cuts(cuts, problem.prior, self.doubt_))


def _at_cut(found: Finding, label: Any) -> Finding:
    """Return a finding on the labels above a class; these are no classes to declare."""
    said = replace(found, explanation=f"Above class {label!r}: {found.explanation}")
    if found.id != "unsupported-class":
        return said
    return replace(said, remedy="Gold labels of such tasks would show which is right.")


def _problems(problem: Problem) -> list[Problem]:
    """Return the problem of each cut: class 1 is above it; two classes are one cut already."""
    K = problem.data.n_classes
    if K <= 2:
        return [replace(problem, data=replace(problem.data, ordered=False))]
    return [two_classes(problem, np.arange(K) > k, ("not above", "above")) for k in range(K - 1)]


def _undoubted(probas: Any, doubt: float) -> Floats:
    """Return the probability above a cut (N,) without the method's own doubt.

    It differs from cut to cut, which would reverse their order, and moves the median.
    """
    return np.clip((as_dense(probas)[:, 1] - doubt / 2) / (1 - doubt), 0.0, 1.0)


def _between_cuts(cuts: list[Floats], prior: TaskPrior, doubt: float) -> Floats:
    """Return the posterior (N, K) from the probabilities (N,) above the K - 1 cuts."""
    above = nonincreasing_rows(np.stack(cuts, axis=1))
    above = doubt + (1 - 2 * doubt) * above
    n, ends = len(above), np.ones((len(above), 1))
    probas = np.maximum(-np.diff(above, axis=1, prepend=ends, append=0 * ends), 0.0)
    # Separate fits may leave probability to a class that the prior of the task rules out.
    impossible = np.isneginf(prior.rows)
    if impossible.any():
        probas[impossible[prior.index if prior.index is not None else np.zeros(n, int)]] = 0.0
    total = probas.sum(axis=1, keepdims=True)
    probas = np.where(total > 0, probas, prior.probabilities(n))
    return np.asarray(probas / probas.sum(axis=1, keepdims=True))


def nonincreasing_rows(table: Floats) -> Floats:
    """Return the nearest rows, by least squares, that do not increase.

    Pool adjacent violators, for all rows at once: columns are added one after the other as blocks
    of their own, and a block whose mean exceeds that of the block before is merged with it.

    Examples
    --------
    >>> nonincreasing_rows(np.array([[0.9, 0.2, 0.4], [0.3, 0.6, 0.9]])).round(3)
    array([[0.9, 0.3, 0.3],
           [0.6, 0.6, 0.6]])
    """
    result = np.array(table, dtype=np.float64)
    wrong = np.flatnonzero((np.diff(result, axis=1) > 0).any(axis=1))
    n, n_columns = len(wrong), result.shape[1]
    mean, size = np.zeros((n, n_columns)), np.zeros((n, n_columns), dtype=np.int64)
    last = np.full(n, -1)  # the last block of each row
    for column in range(n_columns):
        last += 1
        mean[np.arange(n), last] = result[wrong, column]
        size[np.arange(n), last] = 1
        merging = np.arange(n)
        while True:
            merging = merging[last[merging] > 0]
            b = last[merging]
            merging = merging[mean[merging, b] > mean[merging, b - 1]]
            if not len(merging):
                break
            b, a = last[merging], last[merging] - 1
            both = size[merging, a] + size[merging, b]
            total = size[merging, a] * mean[merging, a] + size[merging, b] * mean[merging, b]
            mean[merging, a], size[merging, a] = total / both, both
            size[merging, b] = 0
            last[merging] = a
    result[wrong] = np.repeat(mean.ravel(), size.ravel()).reshape(n, n_columns)
    return result


def _class_shares(parts: list[Floats | None]) -> Floats | None:
    """Return the share of each class (K,), from the shares above each cut."""
    shares = [part[1] for part in parts if part is not None]
    if len(shares) < len(parts):
        return None
    above = nonincreasing_rows(np.array([shares]))[0]
    found = np.maximum(-np.diff(above, prepend=1.0, append=0.0), 0.0)
    return np.asarray(found / found.sum())


def _rates(labels: CrowdLabels, results: list[Fit]) -> dict[str, Floats]:
    """Return sensitivities and specificities, (n_workers, n_cuts) each."""
    n_cuts = labels.n_classes - 1
    rates = np.empty((2, labels.n_workers, n_cuts))
    for k, result in enumerate(results[:n_cuts]):
        if result.confusion is not None:
            rates[:, :, k] = result.confusion[:, 1, 1], result.confusion[:, 0, 0]
            continue
        weight = labels.weights
        above = as_dense(result.probas)[labels.task, 1]
        said = labels.label > k
        for row, share, agrees in ((0, above, said), (1, 1 - above, ~said)):
            right = np.bincount(labels.worker, weight * share * agrees, labels.n_workers)
            total = np.bincount(labels.worker, weight * share, labels.n_workers)
            rates[row, :, k] = (right + 1) / (total + 2)
    return {"sensitivity": rates[0], "specificity": rates[1]}
