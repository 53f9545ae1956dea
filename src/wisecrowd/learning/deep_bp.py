"""deepBP: belief propagation and a classifier, in turn."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.aggregation.belief_propagation import BeliefPropagation
from wisecrowd.learning.alternating import AlternatingClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class DeepBP(AlternatingClassifier):
    r"""Belief propagation whose task prior is a classifier that learns from its beliefs.

    .. math::
        q_i(k) \propto \mathrm{clip}(f_k(x_i), c) \prod_j \mu_{j \to i}(k), \qquad
        f \leftarrow \arg\min_f -\sum_i \sum_k q_i(k) \log f_k(x_i)

    where :math:`\mu_{j \to i}` integrates over what worker :math:`j` may be like, given its other
    labels.

    Use it when workers have few labels each, or when some label very much and at random: what is
    not known about a worker is weighed, not fixed. Cost per E-step: O(annotations × nodes).

    Parameters
    ----------
    prior : "weak" is a one-coin Beta(2, 1)
    clip, steps, rounds, clip_in_loss
        See ``AlternatingClassifier``.
    **others
        Those of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Notes
    -----
    The published code draws new samples of workers in every iteration, of a two-coin prior; here
    messages are exact for one-coin and two-coin workers, which is faster and more accurate.

    References
    ----------
    Kim, Cho, Kim and Ok (2022). Robust deep learning from crowds with belief propagation. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> DeepBP(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    rounds: int = 10

    def _inference(self) -> BeliefPropagation:
        return BeliefPropagation(prior=self.prior, max_iter=self.rounds, tol=1e-3)
