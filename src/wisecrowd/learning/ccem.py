r"""Coupled cross entropy: a classifier and one confusion matrix per worker, learned together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import ConfusionModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import SoftmaxConfusion
from wisecrowd.nn.objectives import coupled_cross_entropy


@dataclass(eq=False, repr=False, kw_only=True)
class CCEM(NeuralClassifier):
    r"""Coupled cross entropy minimisation: fit a classifier and confusion matrices to each label.

    .. math::
        \min_{f, \theta} \frac{1}{E} \sum_e -\log \sum_k f_k(x_{i_e})\, \theta_{j_e}[k, l_e]

    with the rows of every :math:`\theta_j` on the simplex. Labels of one task need not be
    independent given its class. The confusion matrices are identified if each class has some
    unambiguous tasks and an expert.

    Use it when tasks have few labels each, or only one. Cost per epoch: that of the
    classifier plus O(annotations × classes).

    Parameters
    ----------
    strength : float
        Initial logit of the diagonals of the confusion matrices; the other logits are 0.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    probas_ : (n_tasks, n_classes)
        Posterior from features and labels, which treats labels as independent given the class.

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI; Ibrahim, Nguyen and Fu (2023).
    Deep learning from crowdsourced labels: coupled cross-entropy minimization, identifiability,
    and regularization. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> CCEM(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    strength: float = 4.0

    limits: ClassVar[Limits] = {"strength": Number(0.0)}

    def _build(self, network: nn.Module, data: CrowdData) -> CoupledModel:
        labels = data.labels
        head = SoftmaxConfusion(labels.n_workers, labels.n_classes, strength=self.strength)
        return CoupledModel(network, head)


class CoupledModel(ConfusionModel):
    """A classifier with coupled cross entropy as its loss."""

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the coupled cross entropy."""
        return coupled_cross_entropy(log_probas, self.head.rows(batch.worker, batch.label), batch)
