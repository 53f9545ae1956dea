r"""Label laws: :math:`p(y_{ij} = l \mid z_i = k)` of worker j on task i, under a fit.

A fitted method returns its law by ``label_law()``. Simulation, held-out scores and the audit use
the law, whatever the method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wisecrowd.core.types import Codes, Floats, Longs

NEW_TASK = -1  # code of a task that the fit has not seen
BLOCK = 1 << 18  # annotations drawn at once, which limits temporaries to a few MB
TINY = 1e-300


class CumulativeTable:
    """Cumulative rows of confusion matrices, searched for many annotations at once.

    Parameters
    ----------
    rows : ndarray of shape (..., K)
        Non-negative; each row is normalised to sum one.

    Examples
    --------
    >>> import numpy as np
    >>> table = CumulativeTable(np.array([[0.2, 0.0, 0.8], [1.0, 0.0, 0.0]]))
    >>> table.search(np.array([0, 0, 1]), np.array([0.1, 0.2, 0.999])).tolist()
    [0, 2, 0]
    """

    def __init__(self, rows: Floats) -> None:
        self.n_classes = rows.shape[-1]
        cumulative = np.cumsum(rows.reshape(-1, self.n_classes), axis=1)
        # Dividing by the total makes every entry from the last possible label on exactly one,
        # so that a label of probability zero is never drawn.
        cumulative /= cumulative[:, -1:]
        self._flat = cumulative.ravel()

    def search(self, row: Longs, uniform: Floats) -> Longs:
        """Find the first label whose cumulative probability exceeds `uniform` < 1.

        A binary search over all annotations at once: O(log K) gathers, no (E, K) array.
        """
        start, last = row * self.n_classes, self.n_classes - 1
        label = np.zeros(row.size, dtype=np.int64)
        step = 1 << last.bit_length() >> 1
        while step:
            candidate = label + step
            below = self._flat[start + np.minimum(candidate, last + 1) - 1] <= uniform
            label[below] = candidate[below]
            step >>= 1
        return label


class LabelSampler(ABC):
    """Sampler of labels given the true class, the worker and the task."""

    @abstractmethod
    def pick(self, truth: Codes, worker: Codes, task: Codes, uniform: Floats) -> Longs:
        """Convert uniform numbers (n,) to labels (n,)."""

    def draw(self, truth: Codes, worker: Codes, task: Codes, rng: np.random.Generator) -> Codes:
        """Draw one label per annotation (n,); ``truth`` (n,) is the class of the annotation's task.

        Every annotation uses one uniform number, in order.
        """
        label = np.empty(truth.size, dtype=np.int32)
        for start in range(0, truth.size, BLOCK):
            block = slice(start, start + BLOCK)
            uniform = rng.random(label[block].size)
            label[block] = self.pick(truth[block], worker[block], task[block], uniform)
        return label


class LabelLaw(LabelSampler):
    """Probabilities of labels given the class of a task, the worker and the task.

    Classes, labels, workers and tasks are codes of the fit. ``NEW_TASK`` (-1) is a task that the
    fit has not seen. Arguments broadcast against each other.

    Attributes
    ----------
    class_prior : (n_classes,)
        Probabilities of the classes before any label is observed.
    """

    class_prior: Floats

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_prior)

    @abstractmethod
    def prob(self, label: Any, truth: Any, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Return p(label | class ``truth``, worker, task), elementwise."""

    @abstractmethod
    def probas(self, belief: Floats, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Return p(label | belief, worker, task) (n, n_classes) for beliefs (n, n_classes).

        A belief is a distribution over the class of the task. ``worker`` is one code or (n,).
        """

    def log_prob(self, label: Any, truth: Any, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Return the logarithm of :meth:`prob`, with zero replaced by 1e-300."""
        return np.asarray(np.log(np.maximum(self.prob(label, truth, worker, task), TINY)))

    def confusion(self, worker: Any) -> Floats:
        """Return confusion matrices (..., n_classes, n_classes) of some workers on a new task."""
        label = np.arange(self.n_classes)
        return self.prob(label, label[:, None], np.asarray(worker)[..., None, None])


@dataclass(frozen=True, eq=False)
class ConfusionLaw(LabelLaw):
    r"""One confusion matrix per worker: :math:`p(y_{ij} = l \mid z_i = k) = \theta_j[k, l]`.

    Attributes
    ----------
    class_prior : (n_classes,)
    matrices : (n_workers, n_classes, n_classes)

    Examples
    --------
    >>> law = ConfusionLaw(np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.2, 0.8]]]))
    >>> law.probas(np.array([[1.0, 0.0], [0.5, 0.5]]), worker=0)
    array([[0.9 , 0.1 ],
           [0.55, 0.45]])
    """

    class_prior: Floats
    matrices: Floats

    def prob(self, label: Any, truth: Any, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Look up the entries of the matrices."""
        return np.asarray(self.matrices[worker, truth, label])

    def probas(self, belief: Floats, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Average the rows of the matrices."""
        if np.ndim(worker) == 0:
            return np.asarray(belief @ self.matrices[worker])
        return np.asarray(np.einsum("nk,nkl->nl", belief, self.matrices[worker]))

    def confusion(self, worker: Any) -> Floats:
        """Return the matrices themselves."""
        return np.asarray(self.matrices[worker])

    def pick(self, truth: Codes, worker: Codes, task: Codes, uniform: Floats) -> Longs:
        """Search the worker's cumulative row."""
        return self._table.search(worker.astype(np.int64) * self.n_classes + truth, uniform)

    @cached_property
    def _table(self) -> CumulativeTable:
        return CumulativeTable(self.matrices)


@dataclass(frozen=True, eq=False)
class OneCoinLaw(LabelLaw):
    """One accuracy per worker; wrong labels are spread evenly. Memory does not grow with classes.

    Attributes
    ----------
    class_prior : (n_classes,)
    accuracy : (n_workers,)

    Examples
    --------
    >>> law = OneCoinLaw(np.full(3, 1 / 3), np.array([0.8]))
    >>> law.confusion(0)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """

    class_prior: Floats
    accuracy: Floats

    def correct(self, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Return the probability of a correct label, elementwise."""
        return np.asarray(self.accuracy[worker])

    def prob(self, label: Any, truth: Any, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Return the accuracy for the class itself, an equal share of the rest for other labels."""
        right, wrong = self._right_and_wrong(worker, task)
        return np.where(np.equal(label, truth), right, wrong)

    def probas(self, belief: Floats, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Mix the belief with a uniform distribution."""
        right, wrong = self._right_and_wrong(worker, task)
        total = belief.sum(axis=1, keepdims=True)
        return np.asarray(belief * right[..., None] + (total - belief) * wrong[..., None])

    def pick(self, truth: Codes, worker: Codes, task: Codes, uniform: Floats) -> Longs:
        """Compute the result of a search in the worker's cumulative row."""
        right, wrong = self._right_and_wrong(worker, task)
        above = uniform >= truth * wrong + right
        hit = (uniform >= truth * wrong) & ~above
        steps = np.where(above, uniform - right, uniform)
        other = np.divide(steps, wrong, out=np.zeros_like(steps), where=wrong > 0) + above
        least, most = np.where(above, truth + 1, 0), np.where(above, self.n_classes - 1, truth - 1)
        return np.where(hit, truth, np.clip(other.astype(np.int64), least, most))

    def _right_and_wrong(self, worker: Any, task: Any) -> tuple[Floats, Floats]:
        right = self.correct(worker, task)
        if self.n_classes == 1:
            return np.ones_like(right), np.zeros_like(right)
        return right, (1 - right) / (self.n_classes - 1)


@dataclass(frozen=True, eq=False)
class AbilityLaw(OneCoinLaw):
    r"""Ability of the worker times easiness of the task: correct with :math:`\sigma(a_j b_i)`.

    Attributes
    ----------
    class_prior : (n_classes,)
    accuracy : (n_workers,)
        Probability of a correct label on a new task.
    ability : (n_workers,)
    easiness : (n_tasks,)
    """

    ability: Floats
    easiness: Floats

    def correct(self, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Return the probability of a correct label, elementwise."""
        known = 0.5 * (1 + np.tanh(0.5 * self.ability[worker] * self.easiness[task]))
        return np.asarray(np.where(np.equal(task, NEW_TASK), self.accuracy[worker], known))


@dataclass(frozen=True, eq=False)
class DifficultyLaw(LabelLaw):
    r"""Confusion matrices and a share of labels at random: :math:`(1 - d_i) \theta_j + d_i m`.

    Attributes
    ----------
    class_prior : (n_classes,)
    rates : (n_workers, n_classes, n_classes) the matrices :math:`\theta` without labels at random
    shares : (n_classes,) the label shares :math:`m`
    difficulty : (n_tasks + 1,)
        Probability of a label at random in each task; the last entry is that of a new task.
    """

    class_prior: Floats
    rates: Floats
    shares: Floats
    difficulty: Floats

    def prob(self, label: Any, truth: Any, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Mix the entries of the matrices with the label shares."""
        level = self.difficulty[task]
        return np.asarray((1 - level) * self.rates[worker, truth, label]
                          + level * self.shares[label])  # fmt: skip

    def probas(self, belief: Floats, worker: Any, task: Any = NEW_TASK) -> Floats:
        """Average the rows of the matrices and mix them with the label shares."""
        level = np.reshape(self.difficulty[task], (-1, 1))
        if np.ndim(worker) == 0:
            rows = belief @ self.rates[worker]
        else:
            rows = np.einsum("nk,nkl->nl", belief, self.rates[worker])
        total = belief.sum(axis=1, keepdims=True)
        return np.asarray((1 - level) * rows + level * total * self.shares)

    def pick(self, truth: Codes, worker: Codes, task: Codes, uniform: Floats) -> Longs:
        """Search the label shares or the worker's cumulative row."""
        level = self.difficulty[task]
        chance = uniform < level
        rest = np.where(
            chance, uniform / np.where(chance, level, 1), (uniform - level) / (1 - level)
        )
        rest = np.clip(rest, 0, np.nextafter(1, 0))
        last = self.rates.shape[0] * self.n_classes
        row = np.where(chance, last, worker.astype(np.int64) * self.n_classes + truth)
        return self._table.search(row, rest)

    @cached_property
    def _table(self) -> CumulativeTable:
        return CumulativeTable(np.vstack([self.rates.reshape(-1, self.n_classes), self.shares]))


def law_from_attributes(fitted: Mapping[str, Any]) -> LabelLaw | None:
    """Return the law defined by the attributes of a fit, or None."""
    prior, confusion = fitted.get("class_prior_"), fitted.get("confusion_")
    if prior is None:
        return None
    if confusion is not None:
        return ConfusionLaw(prior, confusion)
    accuracy = fitted.get("accuracy_")
    return None if accuracy is None else OneCoinLaw(prior, accuracy)
