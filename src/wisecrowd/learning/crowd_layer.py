"""The crowd layer: one layer of unconstrained weights per worker after the classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.objectives import label_losses

KINDS = ("matrix", "vector", "bias", "vector+bias", "scalar")


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdLayer(NeuralClassifier):
    r"""The crowd layer: each worker reweights the class probabilities before a second softmax.

    .. math::
        \min \frac{1}{E} \sum_e -\log \mathrm{softmax}(o_{j_e}(p_{i_e}))_{l_e}, \qquad
        o_j(p) = W_j^\top p,\; w_j \circ p,\; p + b_j,\; w_j \circ p + b_j,\; s_j p

    with :math:`p_i = f(x_i)`. As in the paper, the weights are not normalised and are not
    probabilities, so ``confusion_`` is estimated from the output of the trained classifier.

    Use it when you need a simple baseline that trains fast. Prefer CCEM if the workers are of
    interest. Cost per epoch: that of the classifier plus O(annotations × classes²), or
    O(annotations × classes) for all kinds but the matrix.

    Parameters
    ----------
    kind : {"matrix", "vector", "bias", "vector+bias", "scalar"}
        The form of :math:`o_j`; all start as the identity.
    reduction : {"labels", "tasks"}
        Average over labels, or sum over the labels of a task and average over tasks (the paper).
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    worker_weight_ : (J, K, K), (J, K) or (J, 1), where the kind has one
    worker_bias_ : (J, K), where the kind has one

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> CrowdLayer(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    kind: str = "matrix"
    reduction: str = "labels"

    saves: ClassVar[dict[str, Saved]] = {
        "worker_weight_": SavedArray("J K K|J K|J 1", optional=True),
        "worker_bias_": SavedArray("J K", optional=True),
    }

    limits: ClassVar[Limits] = {"kind": Choice(KINDS), "reduction": Choice(("labels", "tasks"))}

    def _build(self, network: nn.Module, data: CrowdData) -> LayerModel:
        labels = data.labels
        return LayerModel(
            network, labels.n_workers, labels.n_classes, self.kind, self.reduction == "tasks"
        )

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        names = {"weight": "worker_weight", "bias": "worker_bias"}
        parts = {names[n]: as_array(p) for n, p in model.named_parameters() if n in names}
        if self.kind == "matrix":  # (K, L, J) in training
            parts["worker_weight"] = parts["worker_weight"].transpose(2, 0, 1).copy()
        return {**super()._learned(model, data), **parts}


class LayerModel(CrowdModel):
    """A classifier with a crowd layer.

    Attributes
    ----------
    weight : (K, L, J), (J, K), (J, 1) or None
        Workers come last in matrices: then a product with many of them is fast.
    bias : (J, K) or None
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self, network: nn.Module, n_workers: int, n_classes: int, kind: str, per_task: bool = False
    ) -> None:
        super().__init__(network)
        self.per_task = per_task
        starts = {
            "matrix": torch.eye(n_classes)[:, :, None].repeat(1, 1, n_workers),
            "vector": torch.ones(n_workers, n_classes),
            "vector+bias": torch.ones(n_workers, n_classes),
            "scalar": torch.ones(n_workers, 1),
        }
        weight = starts.get(kind)
        bias = torch.zeros(n_workers, n_classes) if kind.endswith("bias") else None
        self.register_parameter("weight", None if weight is None else nn.Parameter(weight))
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias))

    def scores(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return (E, K) logits of the labels of each annotation: the o_j(p) of its worker."""
        p, weight = log_probas.exp(), self.weight
        if weight is not None and weight.ndim == 3:
            # sum over k of p_ik W_j[k, l], with annotations last
            own = weight.reshape(-1, weight.shape[2]).index_select(1, batch.worker)
            p = p.T.index_select(1, batch.task)  # (K, E)
            return (p[:, None] * own.reshape(*weight.shape[:2], -1)).sum(dim=0).T
        p = p.index_select(0, batch.task)
        if weight is not None:
            p = weight.index_select(0, batch.worker) * p
        return p if self.bias is None else p + self.bias.index_select(0, batch.worker)

    def _losses(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        return label_losses(self.scores(log_probas, batch), batch.label)  # -log softmax(o)_l

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the cross entropy after the second softmax."""
        loss = batch.mean(self._losses(log_probas, batch))
        return loss / batch.tasks_per_label() if self.per_task else loss

    def label_log_probas(self, batch: CrowdBatch) -> Tensor:
        """Return (E,) log-probabilities of the labels."""
        return -self._losses(self.batch_log_probas(batch), batch)
