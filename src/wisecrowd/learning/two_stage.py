"""Two stages: labels by any aggregator, then a classifier trained on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import Choice, Flag, Limits
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import choose_labels
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import TargetModel
from wisecrowd.learning.training.label_model import with_gold
from wisecrowd.learning.training.neural_classifier import NeuralClassifier

TARGETS = ("soft", "hard")


@dataclass(eq=False, repr=False, kw_only=True)
class TwoStage(NeuralClassifier):
    r"""Aggregate first, by any method, then train on the result by cross entropy.

    .. math::
        \min_f \frac{\sum_i w_i \sum_k -q_i(k) \log f_k(x_i)}{\sum_i w_i}

    with :math:`q` the aggregator's probabilities, or its labels with probability one.

    Use it when you need a simple baseline, or an aggregator fits the crowd well. The
    features do not help to estimate the workers.

    Parameters
    ----------
    aggregator : str or Aggregator
        Name such as "dawid-skene", or a method with its parameters, which is not modified.
    labels : {"soft", "hard"}
        Train on the aggregator's probabilities or on its most probable classes.
    weighted : bool
        Weight tasks by the aggregator's confidence, :math:`w_i = \max_k q_i(k)`.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    aggregated_ : (n_tasks, n_classes)
        The aggregator's class probabilities of the training tasks.
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from the output of the trained classifier.

    References
    ----------
    Raykar et al. (2010). Learning from crowds. JMLR 11; uses it as a baseline.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> model = TwoStage(aggregator="dawid-skene", module="linear", epochs=20, lr=0.1)
    >>> model.fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    aggregator: Any = "majority-vote"
    labels: str = "soft"
    weighted: bool = False

    saves: ClassVar[dict[str, Saved]] = {
        "aggregated_": SavedArray("* K", "distribution"),
    }

    limits: ClassVar[Limits] = {"labels": Choice(TARGETS), "weighted": Flag()}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._fresh_aggregator()

    def _fresh_aggregator(self) -> Aggregator:
        """Return an unfitted copy, so that the user's object is not modified."""
        if isinstance(self.aggregator, str):
            made: Aggregator = get_method(self.aggregator)()
            return made
        if isinstance(self.aggregator, Aggregator):
            return type(self.aggregator)(**self.aggregator.get_params(deep=False))
        raise ParameterError(
            f"aggregator is {self.aggregator!r}; give a name such as 'dawid-skene', or a method."
        )

    def _build(self, network: nn.Module, data: CrowdData) -> AggregatedModel:
        probas = self._aggregate(data)
        targets = probas
        if self.labels == "hard":
            codes, _ = choose_labels(probas, data.labels.class_totals)
            targets = np.eye(probas.shape[1])[codes]
        if self.weighted:
            sure = probas.max(axis=1, keepdims=True)
            useful = (data.labels.labels_per_task > 0) | (data.gold >= 0)
            targets = targets * sure / sure[useful].mean()
        return AggregatedModel(network, targets, probas)

    def _aggregate(self, data: CrowdData) -> Floats:
        """Return (N, K) class probabilities from the training labels and gold."""
        gold = None
        if (data.gold >= 0).any():
            known = np.flatnonzero(data.gold >= 0)
            ids, classes = data.labels.tasks[known], data.labels.classes[data.gold[known]]
            gold = dict(zip(ids.tolist(), classes.tolist(), strict=True))
        probas = self._fresh_aggregator()._fit_for_targets(data.labels, gold).probas_
        dense = probas.toarray() if hasattr(probas, "toarray") else probas
        return with_gold(np.array(dense, dtype=np.float64), data)

    def _learned(self, model: Any, data: CrowdData) -> dict[str, Any]:
        return {"aggregated": model.aggregated}


class AggregatedModel(TargetModel):
    """A network with the aggregator's output as fixed targets."""

    def __init__(self, network: nn.Module, targets: Floats, aggregated: Floats) -> None:
        super().__init__(network, torch.from_numpy(targets))
        self.aggregated = aggregated
