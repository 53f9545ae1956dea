"""Training of a network on the posterior of a method that has none; needs torch."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import TargetModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class PosteriorTrainer(NeuralClassifier):
    """A network trained by cross entropy to given class probabilities, of all tasks.

    Attributes
    ----------
    targets : (N, K)
        The class probabilities.
    """

    targets: Any = None

    uses_unlabelled: ClassVar[bool] = True

    def _build(self, network: nn.Module, data: CrowdData) -> TargetModel:
        return TargetModel(network, torch.from_numpy(self.targets))


def new_trainer(
    module: Any, options: dict[str, Any] | None, rng: np.random.Generator
) -> PosteriorTrainer:
    """Return a trainer, or an error that names the wrong option.

    Parameters
    ----------
    module : str, torch module, or callable
    options : dict, optional
        Parameters of ``NeuralClassifier``.
    rng : generator that draws the seed
    """
    given, known = dict(options or {}), {one.name for one in fields(NeuralClassifier)}
    fixed = known & {"module", "random_state", "checkpoint"}
    unknown = sorted(set(given) - (known - fixed))
    if unknown:
        raise ParameterError(
            f"refine_options has {unknown[0]!r}; it takes {', '.join(sorted(known - fixed))}."
        )
    trainer = PosteriorTrainer(module=module, random_state=int(rng.integers(2**31)), **given)
    trainer._validate_parameters()
    return trainer


def refined(result: Learned, trainer: PosteriorTrainer, training: Training, useful: Any) -> Learned:
    """Return a result whose classifier is a network trained on its posterior.

    Parameters
    ----------
    result : Learned
        With a posterior.
    trainer : PosteriorTrainer
    training : Training
    useful : (N,)
        Tasks whose posterior stays. That of the others is the output of the classifier.
    """
    posterior = np.exp(result.log_probas) if result.probas is None else result.probas
    trainer.targets = posterior.copy()
    learned = trainer._fit(training)
    trainer.targets = None
    shape = learned.extra["input_shape"]
    vars(trainer).update(_network=learned.private["network"], input_shape_=shape)
    return replace(
        result,
        log_probas=learned.log_probas,
        probas=np.where(useful[:, None], posterior, np.exp(learned.log_probas)),
        converged=learned.converged,
        findings=(*result.findings, *learned.findings),
        extra=result.extra | {"input_shape": shape},
        private={"refined": trainer},
    )


def restored(method: CrowdClassifier, files: dict[str, bytes]) -> PosteriorTrainer:
    """Return the trained network of a loaded method, with the weights of its file."""
    trainer = PosteriorTrainer(module=vars(method)["refine"])
    names = ("input_shape_", "classes_", "workers_")
    vars(trainer).update({name: vars(method)[name] for name in names})
    trainer._set_network(files)
    return trainer
