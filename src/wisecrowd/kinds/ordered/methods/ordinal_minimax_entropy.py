"""Ordinal minimax conditional entropy: logits of workers and tasks that respect the order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.minimax_logits import MinimaxMethod
from wisecrowd.kinds.ordered.methods.base import OrderedMethod


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalMinimaxEntropy(OrderedMethod, MinimaxMethod):
    r"""Confusion logits of workers and tasks that are sums over the cuts between classes.

    .. math::
        p(y_{ij} = l \mid z_i = k) \propto \exp\Big(\sum_s
        \sigma_i^s\big[[k > s], [l > s]\big] + \tau_j^s\big[[k > s], [l > s]\big]\Big)

    maximises the likelihood minus :math:`\frac{\lambda_w}{2} \sum_j \|\tau_j - a\|^2 +
    \frac{\lambda_t}{2} \sum_i \|\sigma_i\|^2`. Labels and classes enter only as above or not above
    each cut: four numbers per cut, instead of classes² logits.

    Use it when classes are ordered, tasks differ in difficulty, and workers have dozens of labels.
    Cost per iteration: O(annotations × classes²), and a system of 4 (classes - 1) equations per
    task and worker.

    Parameters
    ----------
    worker_penalty : "auto" or float
        :math:`\lambda_w`; "auto" is 1.
    task_penalty : "auto" or float
        :math:`\lambda_t`; "auto" is :math:`\lambda_w` times labels per worker over labels per task.
        Infinity removes the task logits.
    class_prior : "uniform", "estimate", "auto" or (n_classes,) probabilities
    anchor : float
        The penalty shrinks workers to :math:`p(l \mid k) \propto e^{-a |k - l|}`, with this number
        as :math:`a`; 0 is the published method, which shrinks to random labels.
    decide : {"median", "mode", "mean"}
        Label of a task: the median of its posterior minimises the mean absolute error, the mode the
        number of errors, and the rounded mean the squared error.
    max_iter, tol : int, float
        Maximum number of iterations; relative gain that counts as converged.

    Attributes
    ----------
    cut_logits_ : (n_workers, n_classes - 1, 2, 2)
        :math:`\tau_j`: for each cut, class not above or above it, label not above or above it.
    task_cut_logits_ : (n_tasks, n_classes - 1, 2, 2)
        :math:`\sigma_i`; missing if ``task_penalty`` is infinite.
    confusion_ : (n_workers, n_classes, n_classes)
        The worker's confusion on a task whose logits are zero.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior.
    history_ : tuple of float
        The penalised log-likelihood; it never decreases.

    Notes
    -----
    The optimiser is that of ``MinimaxEntropy``, with the bound on the curvature projected on the
    cuts. With ``anchor=0`` this is the published method, and with two classes both methods are then
    the same. Only start and anchor tie a class to the label of its name. On simulated graded
    responses with fewer than about 30 labels per worker this method was worse than the median vote,
    and ``Thresholds`` was better; a finding says so. The posterior treats a task's logits as known,
    so it is more confident than one that integrates over them.

    References
    ----------
    D. Zhou, Q. Liu, J. C. Platt and C. Meek (2014). Aggregating ordinal labels from crowds by
    minimax conditional entropy. ICML, 262-270.

    Examples
    --------
    >>> labels = [[1, 1, 2], [2, 2, 1], [3, 3, 3], [3, 2, 3], [1, 1, 1], [2, 2, 2]]
    >>> OrdinalMinimaxEntropy().fit(labels).labels_
    array([1, 2, 3, 3, 1, 2])
    """

    anchor: float = 1.0
    max_iter: int = 1000

    saves: ClassVar[dict[str, Saved]] = {
        "cut_logits_": SavedArray("J cuts 2 2"),
        "task_cut_logits_": SavedArray(
            "N cuts 2 2", optional=lambda method: method.task_penalty_used_ == np.inf
        ),
    }

    limits: ClassVar[Limits] = {"anchor": Number(0.0, 10.0)}

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"cuts": max(sizes["K"] - 1, 0)}

    def _findings(self, problem: Problem, result: Fit, gold: Any) -> list[Finding]:
        """Return the findings of ordered methods, and one on workers with few labels."""
        labels = problem.data
        n_workers = max(int(np.count_nonzero(labels.labels_per_worker)), 1)
        per_worker, least = labels.n_annotations / n_workers, 8.0 * (labels.n_classes - 1)
        found = super()._findings(problem, result, gold)
        if per_worker < least and labels.n_classes > 2:
            found.append(_few_labels(per_worker, least))
        return found

    def _centre(self, n_classes: int) -> Floats:
        side = np.array([[0.5, -0.5], [-0.5, 0.5]])
        return self.anchor * np.tile(side.ravel(), n_classes - 1)

    def _basis(self, n_classes: int) -> Floats:
        return cut_basis(n_classes)

    def _extra(self, logits: Floats, workers: Floats, tasks: Floats | None) -> dict[str, Any]:
        found = {"cut_logits": workers.reshape(len(workers), -1, 2, 2)}
        if tasks is not None:
            found["task_cut_logits"] = tasks.reshape(len(tasks), -1, 2, 2)
        return found

    def _worker_coefs(self) -> Floats:
        return np.asarray(self.cut_logits_.reshape(len(self.cut_logits_), -1))


def _few_labels(per_worker: float, least: float) -> Finding:
    other = for_reader("wisecrowd.compare", "wisecrowd compare --methods")
    return Finding(
        "sparse-workers", "medium", per_worker / least, (),
        f"Workers have {per_worker:.0f} labels on average, and the logits of a worker need about "
        f"{least:.0f}; in simulations with so few, the median vote was better.",
        f"Compare it with thresholds and ordinal-latent ({other}) before use.",
    )  # fmt: skip


def cut_basis(n_classes: int) -> Floats:
    """Return the logits of each coefficient (P, K, K): indicators of both sides of each cut.

    Examples
    --------
    >>> cut_basis(3)[3]  # class and label are above the first cut
    array([[0., 0., 0.],
           [0., 1., 1.],
           [0., 1., 1.]])
    """
    above = np.arange(n_classes) > np.arange(n_classes - 1)[:, None]  # (cuts, K)
    sides = np.stack([~above, above], axis=1).astype(np.float64)  # (cuts, 2, K)
    pairs = np.einsum("sak,sbl->sabkl", sides, sides)
    return np.asarray(pairs.reshape(4 * (n_classes - 1), n_classes, n_classes))
