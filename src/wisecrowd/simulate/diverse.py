"""Four workers who err in four different ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.flippers import flip_confusion, random_targets
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class DiverseWorkers(Population):
    r"""A hammer-spammer, a similar-class confuser, a neighbour confuser and an adversary, in turn.

    ===================== =====================================================================
    hammer-spammer        knows with probability `hammer`, else guesses among all classes
    similar-class confuser right with probability `similar`, else the other class of a fixed pair
                          (0, 1), (2, 3), ...; the last of an odd number has no such class and
                          is always right
    neighbour confuser    right with probability `neighbour`, else the class before or after
    adversary             right with probability `adversary`, else one fixed other class
    ===================== =====================================================================

    With the defaults and ten classes the four have accuracies .55, .6, .55 and .1: a mean of
    .45, as in the paper, which gives no more than that mean.

    Parameters
    ----------
    hammer, similar, neighbour, adversary : float, default 0.5, 0.6, 0.55 and 0.1
        Probability of knowing, or giving, the right label.

    References
    ----------
    R. Tanno, A. Saeedi, S. Sankaranarayanan, D. Alexander, N. Silberman (2019). Learning from
    noisy labels by regularized estimation of annotator confusion. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = DiverseWorkers().sample(4, 10, np.random.default_rng(0))
    >>> confusion[:, 3, 3].round(2).tolist()
    [0.55, 0.6, 0.55, 0.1]
    """

    kind: ClassVar[str] = "diverse"
    hammer: float = 0.5
    similar: float = 0.6
    neighbour: float = 0.55
    adversary: float = 0.1

    def __post_init__(self) -> None:
        for name in ("hammer", "similar", "neighbour", "adversary"):
            check_number(name, getattr(self, name), 0.0, 1.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Give the four styles in turn; shape (n_workers, n_classes, n_classes)."""
        targets = random_targets(n_workers, n_classes, rng)
        styles = np.stack(
            [
                self.hammer * np.eye(n_classes) + (1.0 - self.hammer) / n_classes,
                _similar(self.similar, n_classes),
                _neighbour(self.neighbour, n_classes),
            ]
        )
        confusion = flip_confusion(np.full(n_workers, float(self.adversary)), targets)
        style = np.arange(n_workers) % 4
        confusion[style < 3] = styles[style[style < 3]]
        return confusion


def _similar(accuracy: float, n_classes: int) -> Floats:
    partner = np.arange(n_classes) ^ 1
    partner[partner == n_classes] = n_classes - 1
    identity = np.eye(n_classes)
    blend: Floats = accuracy * identity + (1.0 - accuracy) * identity[partner]
    return blend


def _neighbour(accuracy: float, n_classes: int) -> Floats:
    identity = np.eye(n_classes)
    # On a circle, so that the first and the last class have two neighbours as well.
    beside = (np.roll(identity, 1, axis=1) + np.roll(identity, -1, axis=1)) / 2.0
    blend: Floats = accuracy * identity + (1.0 - accuracy) * beside
    return blend
