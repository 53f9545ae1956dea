"""deepBP: alternating belief propagation and training of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from wisecrowd.core.saved_attributes import Saved
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards
from wisecrowd.inference.loop import LoopResult
from wisecrowd.inference.priors import as_worker_prior
from wisecrowd.kinds.classes.families.worker_nodes import starts_edge
from wisecrowd.kinds.classes.methods.belief_propagation import (
    BeliefPropagation,
    MessageModel,
    MessageParams,
    MessageState,
)
from wisecrowd.learning.training.alternating import AlternatingClassifier, AlternatingModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.neural_classifier import as_array
from wisecrowd.learning.training.rows_of_features import remember, remembered


@dataclass(eq=False, repr=False, kw_only=True)
class DeepBP(AlternatingClassifier):
    r"""Belief propagation whose task prior is a classifier that learns from its beliefs.

    .. math::
        q_i(k) \propto \mathrm{clip}(f_k(x_i), c) \prod_j \mu_{j \to i}(k), \qquad
        f \leftarrow \arg\min_f -\sum_i \sum_k q_i(k) \log f_k(x_i)

    where :math:`\mu_{j \to i}` integrates over the parameters of worker :math:`j`, given the
    worker's other labels.

    Use it when workers have few labels each, or when some give many random labels: the uncertainty
    about each worker is integrated out. Cost per E-step: O(annotations × nodes).

    Parameters
    ----------
    prior : prior of the workers; "weak" is a one-coin Beta(2, 1)
    clip, steps, rounds, clip_in_loss
        See ``AlternatingClassifier``.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Posterior mean.
    clip_ : float
        :math:`c`.
    task_key_, task_output_ : (n_tasks,), (n_tasks, n_classes)
        Hash of the labels, and :math:`f(x_i)`: they identify training tasks.

    Notes
    -----
    The messages to a training task leave out its own labels. A new task is predicted from
    :math:`\mathrm{clip}(f)` and the posterior means ``confusion_``. A training task is
    identified by its labels and the output of the classifier, and gets the belief of the fit.

    The published code samples workers from a two-coin prior in every iteration. Here messages are
    exact for one-coin and two-coin workers, which is faster and more accurate. Each E-step starts
    from the messages of the previous one; the paper resets them.

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

    saves: ClassVar[dict[str, Saved]] = remembered()

    def _inference(self, last: bool = False) -> WarmBeliefPropagation:
        # The last run starts without messages, so its result depends on the classifier alone.
        rounds, tol = (500, 1e-9) if last else (self.rounds, 1e-3)
        return WarmBeliefPropagation(prior=self.prior, max_iter=rounds, tol=tol)

    def _build(self, network: nn.Module, data: CrowdData) -> BeliefModel:
        return BeliefModel(network, data, self._inference(), self)

    def _evidence(self, final: Any, data: CrowdData, log_f: Floats) -> dict[str, Any]:
        return remember(data, log_f)


class WarmBeliefPropagation(BeliefPropagation):
    """Belief propagation that starts from given messages and keeps the final ones.

    Between two E-steps the classifier and the messages change little, so a few rounds are enough.
    """

    messages: Floats | None = None

    def _converge(
        self,
        model: MessageModel,
        shards: MemoryShards,
        params: MessageParams,
        states: list[MessageState],
    ) -> LoopResult:
        if self.messages is not None and not params.update:  # else it goes on after a refinement
            cuts = np.cumsum([len(state.message) for state in states])[:-1]
            parts = np.split(self.messages, cuts)
            states = [
                state._replace(message=part.copy())
                for state, part in zip(states, parts, strict=True)
            ]
        done = super()._converge(model, shards, params, states)
        self.messages = np.concatenate([state.message for state in done.states])
        return done


class BeliefModel(AlternatingModel):
    """A model with the messages as a buffer, so that a checkpoint holds them."""

    messages: Tensor

    def __init__(
        self, network: nn.Module, data: CrowdData, method: WarmBeliefPropagation, options: DeepBP
    ) -> None:
        super().__init__(network, data, method, options)
        self.propagation = method
        edges = starts_edge(data.labels.indptr, data.labels.worker)
        coin = as_worker_prior(method.prior).coin and edges.all()
        shape = (len(edges),) if coin else (int(edges.sum()), data.labels.n_classes)
        self.register_buffer("messages", torch.zeros(shape, dtype=torch.float64))

    def infer(self, probas: Floats, data: CrowdData, start: Floats | None = None) -> None:
        """Replace the targets by the beliefs under a task prior (N, K)."""
        self.propagation.messages = as_array(self.messages)
        super().infer(probas, data, start)
        self.messages.copy_(torch.from_numpy(self.propagation.messages))
