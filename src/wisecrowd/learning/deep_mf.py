"""deepMF: mean field inference and a classifier, in turn."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.aggregation.mean_field import MeanField
from wisecrowd.learning.alternating import AlternatingClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class DeepMF(AlternatingClassifier):
    r"""Mean field inference whose task prior is a classifier that learns from its posterior.

    .. math::
        q_i(k) \propto \mathrm{clip}(f_k(x_i), c) \exp \sum_j E\log\theta_j[k, y_{ij}], \qquad
        f \leftarrow \arg\min_f -\sum_i \sum_k q_i(k) \log f_k(x_i)

    Use it when features say something and workers are many, with few labels each. It is faster
    than deepBP, and too sure of workers who label very much at random.

    Parameters
    ----------
    prior : "weak" are Dirichlet rows with 4 on the diagonal and 1 elsewhere
    clip, steps, rounds, clip_in_loss
        See ``AlternatingClassifier``.
    **others
        Those of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Notes
    -----
    With one label per task, matrices as point estimates and no clip, the bound maximised over
    :math:`q` is the coupled cross entropy; with more labels it is the likelihood of AggNet. The
    paper's table equates the bound at :math:`q = f` with the former, which holds for one-hot
    :math:`f` only.

    References
    ----------
    Kim, Cho, Kim and Ok (2022). Robust deep learning from crowds with belief propagation. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> DeepMF(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    def _inference(self, last: bool = False) -> MeanField:
        rounds, tol = (1000, 1e-12) if last else (self.rounds, 1e-6)
        return MeanField(
            prior=self.prior, class_prior="uniform", max_iter=rounds, tol=tol, accelerate=False
        )
