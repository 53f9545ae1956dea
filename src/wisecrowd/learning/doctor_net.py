"""Doctor Net: the mean of one classification head per worker on a shared trunk."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.learning.training.worker_heads import DoctorModel, make_doctors


@dataclass(eq=False, repr=False, kw_only=True)
class DoctorNet(NeuralClassifier):
    r"""Doctor Net: model each worker by a head of its own, and predict the mean.

    .. math::
        p_j(x) = \mathrm{softmax}(W_j\, g(x) + b_j), \qquad
        \min \frac{1}{E} \sum_e -\log p_{j_e}(l_e \mid x_{i_e}), \qquad
        f(x) = \frac{1}{J} \sum_j p_j(x)

    The trunk :math:`g` is the module without its last linear layer. Each worker has such a layer,
    trained on this worker's labels only. The mean leaves out workers without labels.

    Use it when workers are about equally good but disagree. All heads have the same weight, so a
    majority of poor workers decides the result.

    Parameters
    ----------
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from the output of the trained classifier.

    References
    ----------
    Guan, Gulshan, Dai and Hinton (2018). Who said what: modeling individual labelers improves
    classification. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> DoctorNet(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return make_doctors(self.module, shape, n_classes, n_workers)

    def _build(self, network: nn.Module, data: CrowdData) -> DoctorModel:
        return DoctorModel(network, data)
