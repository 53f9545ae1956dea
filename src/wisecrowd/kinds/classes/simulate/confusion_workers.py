"""Workers who label by a confusion matrix, from a single accuracy to any matrix.

Errors are spread evenly, drawn, or go from each class to certain others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_number
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.simulate.worker_population import Population


@dataclass(frozen=True)
class OneCoinWorkers(Population):
    r"""Each worker has one accuracy; wrong labels are spread evenly.

    .. math:: p_j \sim \text{Beta}(a, b), \qquad \theta_j = p_j I + \frac{1 - p_j}{K - 1}(1 - I)

    The symmetric Dirichlet :math:`\text{Dir}(a_1, a_2)` of the belief propagation literature is
    ``OneCoinWorkers(a_1, a_2)``: with a, b below one most workers are nearly perfect or nearly
    always wrong.

    Parameters
    ----------
    a, b : float, default 4 and 2
        Parameters of the Beta distribution; the mean accuracy is a / (a + b).

    References
    ----------
    Q. Liu, J. Peng, A. Ihler (2012). Variational inference for crowdsourcing. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> OneCoinWorkers(8, 2).sample(5, 3, np.random.default_rng(0)).shape
    (5, 3, 3)
    """

    kind: ClassVar[str] = "one-coin"
    a: float = 4.0
    b: float = 2.0

    def __post_init__(self) -> None:
        check_number("a", self.a, SMALLEST_NUMBER)
        check_number("b", self.b, SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw one accuracy per worker; shape (n_workers, n_classes, n_classes)."""
        return one_coin_confusion(rng.beta(self.a, self.b, size=n_workers), n_classes)


def one_coin_confusion(accuracy: Floats, n_classes: int) -> Floats:
    """Fill (J, K, K) matrices with the accuracy on the diagonal and the rest spread evenly.

    Examples
    --------
    >>> import numpy as np
    >>> one_coin_confusion(np.array([0.8]), 3)[0].round(2).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    wrong = (1.0 - accuracy) / max(n_classes - 1, 1)
    confusion = np.broadcast_to(wrong[:, None, None], (accuracy.size, n_classes, n_classes)).copy()
    diagonal = np.arange(n_classes)
    # With one class there is nothing else to say.
    confusion[:, diagonal, diagonal] = accuracy[:, None] if n_classes > 1 else 1.0
    return confusion


@dataclass(frozen=True)
class TwoCoinWorkers(Population):
    r"""Two classes, and an own accuracy for each: two independent Beta draws per worker.

    .. math:: \theta_j[1, 1] \sim \text{Beta}(a_1, b_1) \;\text{(sensitivity)}, \qquad
              \theta_j[0, 0] \sim \text{Beta}(a_0, b_0) \;\text{(specificity)}

    Parameters
    ----------
    a1, b1 : float, default 4 and 2
        Sensitivity: right on the positive class, code 1.
    a0, b0 : float, default 6 and 2
        Specificity: right on the negative class, code 0.

    References
    ----------
    V. C. Raykar et al. (2010). Learning from crowds. JMLR 11.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = TwoCoinWorkers(90, 10, 60, 40).sample(500, 2, np.random.default_rng(0))
    >>> confusion.mean(axis=0).round(1).tolist()
    [[0.6, 0.4], [0.1, 0.9]]
    """

    kind: ClassVar[str] = "two-coin"
    a1: float = 4.0
    b1: float = 2.0
    a0: float = 6.0
    b0: float = 2.0

    def __post_init__(self) -> None:
        for name in ("a1", "b1", "a0", "b0"):
            check_number(name, getattr(self, name), SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw sensitivity and specificity of each worker; shape (n_workers, 2, 2)."""
        if n_classes != 2:
            raise ParameterError(f"Two-coin workers need 2 classes, but there are {n_classes}.")
        sensitivity = rng.beta(self.a1, self.b1, size=n_workers)
        specificity = rng.beta(self.a0, self.b0, size=n_workers)
        rows = [specificity, 1.0 - specificity, 1.0 - sensitivity, sensitivity]
        return np.stack(rows, axis=1).reshape(n_workers, 2, 2)


@dataclass(frozen=True)
class MACEWorkers(Population):
    r"""A worker knows the class with probability :math:`\theta_j`, else draws from :math:`\xi_j`.

    .. math:: p(y_{ij} = l \mid z_i = k) = \theta_j 1\{l = k\} + (1 - \theta_j) \xi_{jl}, \qquad
              \theta_j \sim \text{Beta}(a, b), \; \xi_j \sim \text{Dir}(c, \dots, c)

    Parameters
    ----------
    a, b : float, default 2 and 1
        Beta parameters of knowing.
    concentration : float, default 1
        Dirichlet parameter of the habit.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy (2013). Learning whom to trust with MACE.
    NAACL.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = MACEWorkers().sample(5, 3, np.random.default_rng(0))
    >>> knowing, habit = MACEWorkers.parameters(confusion)
    >>> knowing.shape, habit.shape
    ((5,), (5, 3))
    """

    kind: ClassVar[str] = "mace"
    a: float = 2.0
    b: float = 1.0
    concentration: float = 1.0

    def __post_init__(self) -> None:
        for name in ("a", "b", "concentration"):
            check_number(name, getattr(self, name), SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw knowing and habit of each worker; shape (n_workers, n_classes, n_classes)."""
        knowing = rng.beta(self.a, self.b, size=n_workers)[:, None, None]
        habit = rng.dirichlet(np.full(n_classes, self.concentration), size=n_workers)
        confusion: Floats = knowing * np.eye(n_classes) + (1.0 - knowing) * habit[:, None, :]
        return confusion

    @staticmethod
    def parameters(confusion: Floats) -> tuple[Floats, Floats]:
        r"""Read :math:`\theta` (J,) and :math:`\xi` (J, K) back from the matrices.

        Away from the diagonal a column holds :math:`(1 - \theta_j) \xi_{jl}` in every row. A
        worker who always knows shows no habit; it is returned as uniform.
        """
        n_workers, n_classes, _ = confusion.shape
        if n_classes < 2:
            raise ParameterError("With one class, knowing and guessing look the same.")
        off_diagonal = confusion * (1.0 - np.eye(n_classes))
        guessed = off_diagonal.sum(axis=1) / (n_classes - 1)  # (J, K): (1 - theta) xi
        guessing = guessed.sum(axis=1)
        habit = np.full((n_workers, n_classes), 1.0 / n_classes)
        np.divide(guessed, guessing[:, None], out=habit, where=guessing[:, None] > 0)
        return 1.0 - guessing, habit


@dataclass(frozen=True)
class DirichletWorkers(Population):
    r"""Every row of every confusion matrix is a Dirichlet draw.

    .. math:: \theta_j[k, \cdot] \sim \text{Dir}(\text{off}, \dots, \text{diag}, \dots, \text{off})
              \quad \text{with diag in place } k

    Parameters
    ----------
    diag, off : float, default 4 and 1
        Parameters of the right label and of each wrong one; the mean accuracy is
        diag / (diag + (K - 1) off).

    References
    ----------
    H.-C. Kim, Z. Ghahramani (2012). Bayesian classifier combination. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = DirichletWorkers(8, 1).sample(4, 3, np.random.default_rng(0))
    >>> bool(np.allclose(confusion.sum(axis=2), 1))
    True
    """

    kind: ClassVar[str] = "dirichlet"
    diag: float = 4.0
    off: float = 1.0

    def __post_init__(self) -> None:
        check_number("diag", self.diag, SMALLEST_NUMBER)
        check_number("off", self.off, SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw n_workers x n_classes rows; shape (n_workers, n_classes, n_classes)."""
        confusion = np.empty((n_workers, n_classes, n_classes))
        for k in range(n_classes):
            alpha = np.full(n_classes, self.off)
            alpha[k] = self.diag
            # NumPy's Dirichlet stays on the simplex for tiny parameters, unlike gamma ratios.
            confusion[:, k, :] = rng.dirichlet(alpha, size=n_workers)
        return confusion


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FixedConfusion(Population):
    """Workers whose confusion matrices are given.

    Parameters
    ----------
    matrices : array-like of shape (n_classes, n_classes) or (m, n_classes, n_classes)
        Rows sum to one. One matrix serves any number of workers; m matrices serve a multiple
        of m, in turn.

    Examples
    --------
    >>> import numpy as np
    >>> population = FixedConfusion([[0.9, 0.1], [0.4, 0.6]])
    >>> population.sample(2, 2, np.random.default_rng(0))[1].tolist()
    [[0.9, 0.1], [0.4, 0.6]]
    """

    kind: ClassVar[str] = "fixed"
    matrices: Floats

    def __init__(self, matrices: npt.ArrayLike) -> None:
        given = np.array(matrices, dtype=np.float64)
        if given.ndim == 2:
            given = given[None]
        if given.ndim != 3 or given.shape[1] != given.shape[2] or given.size == 0:
            raise ParameterError(
                "`matrices` must have shape (n_classes, n_classes) or (m, n_classes, n_classes), "
                f"but its shape is {np.shape(matrices)}."
            )
        bad = ~(np.abs(given.sum(axis=2) - 1.0) <= 1e-9) | ~(given >= 0).all(axis=2)
        if bad.any():
            worker, row = (int(index) for index in np.argwhere(bad)[0])
            raise ParameterError(f"Row {row} of matrix {worker} is not a probability vector.")
        given.flags.writeable = False
        object.__setattr__(self, "matrices", given)

    def __repr__(self) -> str:
        count, size, _ = self.matrices.shape
        return f"FixedConfusion({count} given, {size} classes)"

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Repeat the given matrices; shape (n_workers, n_classes, n_classes)."""
        given, size, _ = self.matrices.shape
        if size != n_classes:
            raise ParameterError(f"`matrices` have {size} classes, but there are {n_classes}.")
        if n_workers % given:
            raise ParameterError(f"{given} matrices cannot be shared out to {n_workers} workers.")
        return np.tile(self.matrices, (n_workers // given, 1, 1))


@dataclass(frozen=True)
class PairwiseFlippers(Population):
    r"""Right with probability p, else one fixed other class per worker and true class.

    .. math:: \theta_j[k, k] = p_j, \quad \theta_j[k, t_j(k)] = 1 - p_j, \qquad
              p_j = p + \varepsilon_j, \; \varepsilon_j \sim N(0, \text{jitter}^2)

    clipped to [0, 1], with the target :math:`t_j(k) \ne k` uniform for every worker and class.

    Parameters
    ----------
    p : float, default 0.7
        Mean probability of the right label.
    jitter : float, default 0.01
        Standard deviation of the workers' accuracies around p.

    References
    ----------
    R. Tanno, A. Saeedi, S. Sankaranarayanan, D. Alexander, N. Silberman (2019). Learning from
    noisy labels by regularized estimation of annotator confusion. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = PairwiseFlippers(0.6, jitter=0).sample(1, 4, np.random.default_rng(0))[0]
    >>> (confusion > 0).sum(axis=1).tolist()
    [2, 2, 2, 2]
    """

    kind: ClassVar[str] = "pairwise-flipper"
    p: float = 0.7
    jitter: float = 0.01

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)
        check_number("jitter", self.jitter, 0.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw accuracies and targets; shape (n_workers, n_classes, n_classes)."""
        accuracy = np.clip(self.p + self.jitter * rng.standard_normal(n_workers), 0.0, 1.0)
        return flip_confusion(accuracy, random_targets(n_workers, n_classes, rng))


@dataclass(frozen=True)
class Adversaries(Population):
    r"""Workers who know the class and mostly give a wrong label on purpose.

    .. math:: \theta_j[k, k] = p, \qquad \theta_j[k, l] = \frac{1 - p}{K - 1} \; (l \ne k)

    or, with ``fixed=True``, all the remaining probability on one other class per worker and
    true class.

    Parameters
    ----------
    p : float, default 0.1
        Probability of the right label; below 1/K the worker is worse than chance.
    fixed : bool, default False
        Whether each class is always swapped for the same other one.

    Examples
    --------
    >>> import numpy as np
    >>> Adversaries(0.1).sample(1, 2, np.random.default_rng(0))[0].tolist()
    [[0.1, 0.9], [0.9, 0.1]]
    """

    kind: ClassVar[str] = "adversaries"
    p: float = 0.1
    fixed: bool = False

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Turn the labels around; shape (n_workers, n_classes, n_classes)."""
        accuracy = np.full(n_workers, float(self.p))
        if self.fixed:
            return flip_confusion(accuracy, random_targets(n_workers, n_classes, rng))
        return one_coin_confusion(accuracy, n_classes)


def random_targets(n_workers: int, n_classes: int, rng: np.random.Generator) -> Codes:
    """Draw another class, uniformly, for every worker and class: shape (J, K)."""
    shift = rng.integers(1, max(n_classes, 2), size=(n_workers, n_classes))
    return ((np.arange(n_classes) + shift) % n_classes).astype(np.int32)


def flip_confusion(accuracy: Floats, targets: Codes) -> Floats:
    """Fill (J, K, K) matrices: the accuracy on the diagonal, the rest on the target.

    Examples
    --------
    >>> import numpy as np
    >>> flip_confusion(np.array([0.75]), np.array([[1, 0]]))[0].tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    n_workers, n_classes = targets.shape
    confusion = np.zeros((n_workers, n_classes, n_classes))
    j, k = np.arange(n_workers)[:, None], np.arange(n_classes)
    # Added, not assigned: with one class the target is the class itself.
    confusion[j, k, k] += accuracy[:, None]
    confusion[j, k, targets] += 1.0 - accuracy[:, None]
    return confusion


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
        identity = np.eye(n_classes)
        partner = np.arange(n_classes) ^ 1
        partner[partner == n_classes] = n_classes - 1
        # On a circle, so that the first and the last class have two neighbours as well.
        beside = (np.roll(identity, 1, axis=1) + np.roll(identity, -1, axis=1)) / 2.0
        styles = np.stack(
            [
                self.hammer * identity + (1.0 - self.hammer) / n_classes,
                self.similar * identity + (1.0 - self.similar) * identity[partner],
                self.neighbour * identity + (1.0 - self.neighbour) * beside,
            ]
        )
        confusion = flip_confusion(np.full(n_workers, float(self.adversary)), targets)
        style = np.arange(n_workers) % 4
        confusion[style < 3] = styles[style[style < 3]]
        return confusion
