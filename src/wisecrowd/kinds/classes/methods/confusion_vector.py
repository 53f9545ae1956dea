"""One accuracy per worker and class, fitted by EM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.priors import OneCoinPrior, as_coin_prior
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionEM,
    ConfusionParams,
    as_confusion,
    safe_log,
)
from wisecrowd.kinds.classes.methods.dawid_skene import WorkerConfusionModel, extrapolate_tables


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionVectorModel(WorkerConfusionModel):
    """One accuracy per worker and class, with a Beta prior ``coin``."""

    coin: OneCoinPrior

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the M-step: the share of right labels of each class."""
        n_classes = counts.shape[1]
        if n_classes == 1:  # there is no wrong label
            return np.zeros(counts.shape), 0.0, {"class_accuracy": np.ones(counts.shape[:2])}
        right = np.diagonal(counts, axis1=1, axis2=2)  # (J, K)
        # Summed, not subtracted from the total: 1 - w would lose the errors of a good worker.
        wrong = (counts * (1 - np.eye(n_classes))).sum(axis=2)
        total = right + wrong + self.coin.a + self.coin.b
        divisor = np.where(total > 0, total, 1.0)
        accuracy = np.where(total > 0, (right + self.coin.a) / divisor, 1 / n_classes)
        error = np.where(total > 0, (wrong + self.coin.b) / divisor, 1 - 1 / n_classes)
        log_confusion = vector_log_confusion(accuracy, error)
        return log_confusion, self._log_prior(log_confusion), {"class_accuracy": accuracy}

    def _log_prior(self, log_confusion: Floats) -> float:
        log_right = np.diagonal(log_confusion, axis1=1, axis2=2)
        log_wrong = log_confusion[:, :, 0].copy()  # all wrong labels of a row are equally likely
        log_wrong[:, 0] = log_confusion[:, 0, 1]
        log_wrong += np.log(log_confusion.shape[1] - 1)
        return float((self.coin.a * log_right + self.coin.b * log_wrong).sum())

    def extrapolate(
        self, first: ConfusionParams, second: ConfusionParams, third: ConfusionParams
    ) -> ConfusionParams | None:
        """Extrapolate in the log domain, which keeps wrong labels of a row equally likely."""
        moved = extrapolate_tables(first, second, third, self.fixed_class)
        if moved is None or len(moved.log_class) == 1:
            return None
        log_confusion = as_confusion(moved.table)
        accuracy = np.exp(np.diagonal(log_confusion, axis1=1, axis2=2))
        return replace(
            moved,
            log_prior=self._log_prior(log_confusion),
            extra={"class_accuracy": accuracy},
        )


@dataclass(eq=False, repr=False, kw_only=True)
class ConfusionVector(ConfusionEM):
    r"""One accuracy per worker and class; wrong labels are spread evenly.

    .. math::
        p(y_{ij} = l \mid z_i = k) = w_{jk} \;\text{if}\; l = k, \quad
        \frac{1 - w_{jk}}{K - 1} \;\text{otherwise}, \qquad
        w_{jk} = \frac{\sum_{i: y_{ij} = k} q_i(k) + a}{\sum_{i \in N_j} q_i(k) + a + b}

    Use it when workers know some classes better than others but have too few labels for a full
    confusion matrix: K parameters each instead of K². Cost per iteration: O(annotations × classes);
    memory: workers × classes².

    Parameters
    ----------
    prior : "weak", None, (a, b) or OneCoinPrior
        Pseudo-counts of right and wrong labels of each class. "weak" is (1, 0.5); None is maximum
        likelihood.
    class_prior, max_iter, tol, n_init, accelerate, random_state
        See :class:`~wisecrowd.kinds.classes.families.confusion.ConfusionEM`.

    Attributes
    ----------
    class_accuracy_ : (n_workers, n_classes)
        :math:`w_{jk}`; 1 / n_classes for a class that the worker never saw, if there is no prior.
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)

    Notes
    -----
    With two classes and no prior this is Dawid and Skene's model. The objective adds
    :math:`\sum_{jk} a \log w_{jk} + b \log (1 - w_{jk})` to the log-likelihood.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan (2016). Spectral methods meet EM: a provably optimal
    algorithm for crowdsourcing. Journal of Machine Learning Research 17(102), 1-44. (The models
    between one-coin and full confusion matrices.)

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 1]])
    >>> model = ConfusionVector().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1, 0])
    >>> model.class_accuracy_[2].round(2)  # the third worker leans towards 1
    array([0.45, 0.86])
    """

    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = False
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "class_accuracy_": SavedArray("J K", "probability"),
    }
    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.0, task=15.1, cell=10.5, confusion=54.0)
    limits: ClassVar[Limits] = {"prior": as_coin_prior}

    def _model(self, problem: Problem) -> ConfusionVectorModel:
        return ConfusionVectorModel(**self._shape(problem), coin=as_coin_prior(self.prior))


def vector_log_confusion(accuracy: Floats, error: Floats) -> Floats:
    """Return the log confusion (J, K, K) of shares (J, K) of right and of wrong labels."""
    n_classes = accuracy.shape[1]
    log_wrong = safe_log(error / (n_classes - 1))
    table = np.repeat(log_wrong[:, :, None], n_classes, axis=2)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = safe_log(accuracy)
    return table
