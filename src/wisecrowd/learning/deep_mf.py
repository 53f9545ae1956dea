"""deepMF: alternating mean field inference and training of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.mean_field import MeanField
from wisecrowd.learning.training.alternating import AlternatingClassifier
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.label_model import softmax, vote_scores


@dataclass(eq=False, repr=False, kw_only=True)
class DeepMF(AlternatingClassifier):
    r"""Mean field inference whose task prior is a classifier that learns from its posterior.

    .. math::
        q_i(k) \propto \mathrm{clip}(f_k(x_i), c) \exp \sum_j E\log\theta_j[k, y_{ij}], \qquad
        f \leftarrow \arg\min_f -\sum_i \sum_k q_i(k) \log f_k(x_i)

    Use it when features are informative and there are many workers with few labels each. It is
    faster than deepBP, but overconfident about workers with many random labels.

    Parameters
    ----------
    prior : prior of the workers; "weak" has Dirichlet rows with 4 on the diagonal and 1 elsewhere
    clip, steps, rounds, clip_in_loss
        See ``AlternatingClassifier``.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Posterior mean.
    expected_log_confusion_ : (n_workers, n_classes, n_classes)
        :math:`E \log\theta`: the weights of labels, also in predictions with labels.
    clip_ : float
        :math:`c`.

    Notes
    -----
    Without a clip and with point estimates of the matrices, the bound maximised over :math:`q` is
    the likelihood of AggNet; with one label per task it is the coupled cross entropy. The paper's
    table equates the latter with the bound at :math:`q = f`, which only holds for one-hot
    :math:`f`.

    References
    ----------
    Kim, Cho, Kim and Ok (2022). Robust deep learning from crowds with belief propagation. AISTATS.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> DeepMF(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    saves: ClassVar[dict[str, Saved]] = {"expected_log_confusion_": SavedArray("J K K", "log")}

    def _inference(self, last: bool = False) -> MeanField:
        rounds, tol = (1000, 1e-12) if last else (self.rounds, 1e-6)
        return MeanField(
            prior=self.prior, class_prior="uniform", max_iter=rounds, tol=tol, accelerate=False
        )

    def _evidence(self, final: Any, data: CrowdData, log_f: Floats) -> dict[str, Any]:
        return {"expected_log_confusion": np.array(final.expected_log_confusion_)}

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        votes = vote_scores(self.expected_log_confusion_, labels)
        return softmax(self._log_prior(log_probas) + votes)
