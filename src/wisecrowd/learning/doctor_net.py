"""Doctor Net: one head per worker on a shared trunk, and their mean."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.learning.training.worker_heads import DoctorModel, make_doctors


@dataclass(eq=False, repr=False, kw_only=True)
class DoctorNet(NeuralClassifier):
    r"""Learn to imitate every worker, then ask all of them.

    .. math::
        p_j(x) = \mathrm{softmax}(W_j\, g(x) + b_j), \qquad
        \min \frac{1}{E} \sum_e -\log p_{j_e}(l_e \mid x_{i_e}), \qquad
        f(x) = \frac{1}{J} \sum_j p_j(x)

    The trunk :math:`g` is the module without its last linear layer; each worker has such a layer of
    their own, trained on their labels alone. Workers without labels are not asked.

    Use it when workers are about equally good and differ in opinion: nobody is weighed, so that a
    majority of poor workers prevails.

    Parameters
    ----------
    **others
        Those of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Fitted to the classifier, once it is trained.

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
