"""What a prior on workers gives to methods and simulators; mixtures of several priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.types import Floats
from wisecrowd.inference.quadrature import INSIDE, Rule


class WorkerPosterior(NamedTuple):
    """Conjugate posterior of workers given expected counts.

    Attributes
    ----------
    expected_log, mean : (J, K, K) expected logarithm and mean of the confusion matrix
    log_evidence : (J,) log evidence of the counts under the prior
    """

    expected_log: Floats
    mean: Floats
    log_evidence: Floats


class WorkerPrior:
    """Interface of priors for belief propagation, mean field and simulators.

    Where ``coin`` is true, one accuracy describes a worker: wrong labels are spread evenly, and the
    nodes of ``rule`` are accuracies (S,) instead of matrices (S, K, K).
    """

    @property
    def coin(self) -> bool:
        """Whether one accuracy describes a worker."""
        return False

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, n_classes, n_classes)."""
        raise TypeError(f"{type(self).__name__} cannot be sampled.")

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return nodes and log weights for a worker with ``degree`` labels.

        ``counts`` (K, K), if given, locate the worker's posterior; ``size`` is the number of points
        if no exact rule is affordable.
        """
        raise TypeError(f"{type(self).__name__} has no integration rule.")

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return whether ``rule`` is exact for a worker with this number of labels."""
        return False

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the posterior given expected counts (J, K, K), true class second."""
        raise TypeError(f"{type(self).__name__} has no posterior in closed form.")


def coin_matrices(accuracy: Floats, n_classes: int) -> Floats:
    """Return the (S, K, K) confusion matrices of accuracies (S,), wrong labels spread evenly."""
    if n_classes == 1:
        return np.ones((len(accuracy), 1, 1))  # no label is wrong
    off = (1 - accuracy) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), accuracy[:, None, None], off[:, None, None])


@dataclass(frozen=True, eq=False)
class Discrete(WorkerPrior):
    """A few kinds of worker, such as hammers, spammers and adversaries.

    Parameters
    ----------
    atoms : (S,) accuracies or (S, n_classes, n_classes) confusion matrices
    weights : (S,), optional
        Shares of the kinds; equal by default.

    Examples
    --------
    >>> kinds = Discrete([0.9, 0.5, 0.1], [0.6, 0.3, 0.1])
    >>> kinds.rule(degree=7, n_classes=2).nodes
    array([0.9, 0.5, 0.1])
    """

    atoms: Any
    weights: Any = None

    def __post_init__(self) -> None:
        atoms, shares = np.asarray(self.atoms, float), self._shares()
        good = atoms.ndim in (1, 3) and len(atoms) > 0 and bool(((atoms >= 0) & (atoms <= 1)).all())
        if not good or (atoms.ndim == 3 and not np.allclose(atoms.sum(axis=2), 1)):
            raise ParameterError(
                "atoms must be accuracies (S,) or confusion matrices (S, K, K) whose rows sum to 1."
            )
        if shares.shape != (len(atoms),) or (shares < 0).any() or not shares.sum() > 0:
            raise ParameterError("weights must be one number of at least 0 per atom.")

    @property
    def coin(self) -> bool:
        """Whether the atoms are accuracies."""
        return np.ndim(self.atoms) == 1

    def _shares(self) -> Floats:
        if self.weights is None:
            return np.full(len(self.atoms), 1 / max(len(self.atoms), 1))
        shares = np.asarray(self.weights, dtype=np.float64)
        return shares / shares.sum() if shares.sum() > 0 else shares

    def _matrices(self, n_classes: int) -> Floats:
        atoms = np.asarray(self.atoms, dtype=np.float64)
        matrices = coin_matrices(atoms, n_classes) if atoms.ndim == 1 else atoms
        if matrices.shape[1:] != (n_classes, n_classes):
            raise ParameterError(f"The atoms have shape {atoms.shape} for {n_classes} classes.")
        return matrices

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, n_classes, n_classes)."""
        kinds = rng.choice(len(self.atoms), size=n_workers, p=self._shares())
        return self._matrices(n_classes)[kinds]

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return the atoms as the nodes."""
        log_weight = np.log(np.maximum(self._shares(), 1e-300))
        if self.coin:
            return Rule(np.clip(np.asarray(self.atoms, float), INSIDE, 1 - INSIDE), log_weight)
        inside = np.clip(self._matrices(n_classes), INSIDE, 1.0)
        return Rule(inside / inside.sum(axis=2, keepdims=True), log_weight)

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return True: the rule is always exact."""
        return True

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the posterior shares of the atoms, as moments."""
        matrices = np.clip(self._matrices(counts.shape[1]), INSIDE, 1.0)
        logs = np.log(matrices)
        scores = np.log(np.maximum(self._shares(), 1e-300)) + np.einsum("jkl,skl->js", counts, logs)
        return _mix(scores, logs, matrices)


@dataclass(frozen=True, eq=False)
class MixturePrior(WorkerPrior):
    """A mixture of priors, for crowds with several kinds of worker.

    Parameters
    ----------
    parts : sequence of priors
    weights : (n_parts,), optional
        Shares of the parts; equal by default.
    """

    parts: Sequence[WorkerPrior]
    weights: Any = None

    def __post_init__(self) -> None:
        shares = self._shares()
        if len(self.parts) == 0 or not all(isinstance(p, WorkerPrior) for p in self.parts):
            raise ParameterError(
                "parts must be priors, such as [OneCoinPrior(9, 1), Discrete([0.5])]."
            )
        if shares.shape != (len(self.parts),) or (shares < 0).any() or not shares.sum() > 0:
            raise ParameterError("weights must be one number of at least 0 per part.")

    @property
    def coin(self) -> bool:
        """Whether every part is a coin."""
        return all(part.coin for part in self.parts)

    def _shares(self) -> Floats:
        if self.weights is None:
            return np.full(len(self.parts), 1 / max(len(self.parts), 1))
        shares = np.asarray(self.weights, dtype=np.float64)
        return shares / shares.sum() if shares.sum() > 0 else shares

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, n_classes, n_classes)."""
        kinds = rng.choice(len(self.parts), size=n_workers, p=self._shares())
        drawn = np.empty((n_workers, n_classes, n_classes))
        for number, part in enumerate(self.parts):
            mine = kinds == number
            drawn[mine] = part.sample(int(mine.sum()), n_classes, rng)
        return drawn

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return the concatenated rules of all parts."""
        rules = [part.rule(degree, n_classes, counts, size) for part in self.parts]
        nodes = [
            coin_matrices(rule.nodes, n_classes) if part.coin and not self.coin else rule.nodes
            for part, rule in zip(self.parts, rules, strict=True)
        ]
        log_share = np.log(np.maximum(self._shares(), 1e-300))
        weights = [rule.log_weight + s for rule, s in zip(rules, log_share, strict=True)]
        return Rule(np.concatenate(nodes), np.concatenate(weights))

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return whether the rules of all parts are exact."""
        return all(part.exact(degree, n_classes) for part in self.parts)

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the parts' posteriors, weighted by the evidence of the counts under each part."""
        found = [part.posterior(counts) for part in self.parts]
        log_share = np.log(np.maximum(self._shares(), 1e-300))
        scores = np.stack([p.log_evidence for p in found], axis=1) + log_share
        logs = np.stack([p.expected_log for p in found], axis=1)
        return _mix(scores, logs, np.stack([p.mean for p in found], axis=1))


def _mix(scores: Floats, logs: Floats, means: Floats) -> WorkerPosterior:
    """Mix parts by their log scores (J, S); moments (J, S, K, K), or (S, K, K) for all workers."""
    top = scores.max(axis=1, keepdims=True)
    share = np.exp(scores - top)
    total = share.sum(axis=1, keepdims=True)
    share /= total
    indices = "js,skl->jkl" if logs.ndim == 3 else "js,jskl->jkl"
    expected_log, mean = (np.einsum(indices, share, moments) for moments in (logs, means))
    return WorkerPosterior(expected_log, mean, (top + np.log(total))[:, 0])
