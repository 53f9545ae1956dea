"""Minimax conditional entropy: free confusion logits of workers and tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.minimax_logits import MinimaxMethod


@dataclass(eq=False, repr=False, kw_only=True)
class MinimaxEntropy(MinimaxMethod):
    r"""Confusion logits of workers and tasks, by minimax conditional entropy.

    .. math::
        p(y_{ij} = l \mid z_i = k) \propto \exp(\sigma_i[k, l] + \tau_j[k, l])

    maximises the likelihood minus :math:`\frac{\lambda_w}{2} \sum_j \|\tau_j\|^2 +
    \frac{\lambda_t}{2} \sum_i \|\sigma_i\|^2`. This is the dual of a minimax problem: the entropy
    of the labels given the classes is maximised under the approximate counts of each worker and
    task, and minimised over the classes.

    Use it when tasks differ in what they are mistaken for, and workers have dozens of labels: with
    few labels, the penalty dominates. Cost per iteration: O(annotations × classes²); memory:
    (tasks + workers) × classes².

    Parameters
    ----------
    worker_penalty : "auto" or float
        :math:`\lambda_w`; "auto" is 1.
    task_penalty : "auto" or float
        :math:`\lambda_t`; "auto" is :math:`\lambda_w` times labels per worker over labels per task.
        Infinity removes the task logits, which gives Dawid and Skene's model with a normal prior on
        the logits.
    class_prior : "uniform", "estimate", "auto" or (n_classes,) probabilities
    max_iter, tol : int, float
        Maximum number of iterations; relative gain that counts as converged.

    Attributes
    ----------
    worker_logits_ : (n_workers, n_classes, n_classes)
        :math:`\tau_j`.
    task_logits_ : (n_tasks, n_classes, n_classes)
        :math:`\sigma_i`; missing if ``task_penalty`` is infinite.
    confusion_ : (n_workers, n_classes, n_classes)
        The softmax of :math:`\tau_j`: the worker's confusion on a task whose logits are zero.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior.
    history_ : tuple of float
        The penalised log-likelihood; it never decreases.

    Notes
    -----
    The published solver alternates full optimisations of workers, tasks and classes. Here every
    pass moves all of them to the maximum of a quadratic that lies below the objective, without a
    line search. The published penalty is K² / 4, which is also 1 for two classes; with ten classes
    it outweighs the labels, so the default here is always 1. After the last pass the task logits
    are computed again from the worker logits, so that new tasks are treated like the fitted ones;
    on real crowds this changes hardly any label. The posterior treats a task's logits as known, so
    it is more confident than one that integrates over them.

    Permuted classes fit equally well; the start, the soft vote, decides between them. Nothing ties
    a class to the label of its name either, so a class that nobody chose is left out unless a prior
    or gold names it. Workers who labelled only one task are pooled into one worker: separately,
    each would explain its own label.

    References
    ----------
    D. Zhou, Q. Liu, J. C. Platt and C. Meek (2014). Aggregating ordinal labels from crowds by
    minimax conditional entropy. ICML, 262-270.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = MinimaxEntropy().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.worker_accuracy_.argmin()
    np.int64(2)
    """

    saves: ClassVar[dict[str, Saved]] = {
        "worker_logits_": SavedArray("J K K"),
        "task_logits_": SavedArray(
            "N K K", optional=lambda method: method.task_penalty_used_ == np.inf
        ),
    }

    def _extra(self, logits: Floats, workers: Floats, tasks: Floats | None) -> dict[str, Any]:
        found = {"worker_logits": logits}
        return found if tasks is None else {**found, "task_logits": tasks}

    def _worker_coefs(self) -> Floats:
        return np.asarray(self.worker_logits_)
