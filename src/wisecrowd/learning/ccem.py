r"""Coupled cross entropy: a classifier and one confusion matrix per worker, learned together."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from wisecrowd.core.parameters import check_number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import ConfusionModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import SoftmaxConfusion
from wisecrowd.nn.objectives import coupled_cross_entropy


@dataclass(eq=False, repr=False, kw_only=True)
class CCEM(NeuralClassifier):
    r"""Coupled cross entropy minimisation: explain every label by classifier and worker.

    .. math::
        \min_{f, \theta} \frac{1}{E} \sum_e -\log \sum_k f_k(x_{i_e})\, \theta_{j_e}[k, l_e]

    with the rows of every :math:`\theta_j` on the simplex. Labels of one task need not be
    independent given its class. The confusion matrices are identified where some tasks are clear
    cases of each class and each class has an expert.

    Use it when tasks have few labels each, also when they have one. Cost per epoch: that of the
    classifier plus O(annotations × classes).

    Parameters
    ----------
    strength : float
        Logit of the diagonal of the confusion matrices at the start, against 0 elsewhere.
    **others
        Those of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    probas_ : (n_tasks, n_classes)
        From features and labels together, as if labels were independent given the class.

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

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("strength", self.strength, 0.0)

    def _build(self, network: nn.Module, data: CrowdData) -> CoupledModel:
        labels = data.labels
        head = SoftmaxConfusion(labels.n_workers, labels.n_classes, strength=self.strength)
        return CoupledModel(network, head)


class CoupledModel(ConfusionModel):
    """The loss that gives the method its name."""

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the coupled cross entropy."""
        return coupled_cross_entropy(log_probas, self.head.rows(batch.worker, batch.label), batch)
