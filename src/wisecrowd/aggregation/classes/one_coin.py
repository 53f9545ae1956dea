"""One accuracy per worker, fitted by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.families.one_coin_em import OneCoinEM


@dataclass(eq=False, repr=False, kw_only=True)
class OneCoin(OneCoinEM):
    r"""One accuracy per worker; wrong labels are spread evenly over the other classes.

    .. math::
        p(y_{ij} = l \mid z_i = k) = p_j \;\text{if}\; l = k, \quad (1 - p_j) / (K - 1)
        \;\text{otherwise}, \qquad p_j = \frac{\sum_{i} q_i(y_{ij}) + a}{n_j + a + b}

    Use it when workers have few labels each, or there are many classes: one parameter per worker
    instead of K². Cost per iteration: O(annotations) for any number of classes; memory: 20 to 50
    bytes per annotation and nothing that grows with tasks × classes.

    Parameters
    ----------
    prior : "weak", None, (a, b) or :class:`~wisecrowd.inference.priors.OneCoinPrior`
        Pseudo-counts :math:`a` of correct and :math:`b` of wrong labels. "weak" is (1, 0.5):
        slightly better than random, so that a worker with two labels is not treated as an
        adversary. None is maximum likelihood.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal. Frequencies that contradict
        the vote are replaced by its shares.
    max_iter, tol : int, float
        Maximum number of passes over the annotations; relative gain that counts as converged.
    n_init : int
        Number of starts: the given one or the soft vote, then random accuracies between chance and
        one; the best objective wins.
    accelerate : bool
        Extrapolate slow runs (SQUAREM). An extrapolation that lowers the objective is rejected,
        and counts as a pass.
    random_state : int, Generator or None

    Attributes
    ----------
    accuracy_ : (n_workers,)
        :math:`p_j`; a label by worker ``j`` weighs :math:`\log\frac{(K - 1) p_j}{1 - p_j}` votes.
    confusion_ : (n_workers, n_classes, n_classes)
        The confusion matrices given by the accuracies, if they have at most 10⁷ numbers.
    class_prior_ : (n_classes,)
    probas_ : (n_tasks, n_classes)
        Dense up to 5·10⁷ numbers. Beyond that, sparse (CSR) over the received labels of a task, its
        gold label and its most probable class; rows then sum to one minus the probability of all
        other classes, which is spread over them by their prior.
    history_ : tuple of float
        Log-likelihood plus :math:`\sum_j a \log p_j + b \log(1 - p_j)`; it never decreases.

    Notes
    -----
    This is Dawid and Skene's model with tied parameters, and has the same posterior. With K = 1
    every label is right and the accuracies are one. The most probable class is that of a weighted
    vote, with the log-odds as weights and the log class prior added.

    Estimated class frequencies can absorb errors that one parameter per worker cannot explain, as
    where workers miss one class more often than the others. "auto" compares them with the vote:
    if the fit expects a class to win a share of the votes that differs by more than .1 and by four
    standard errors, the frequencies are those of the vote. "estimate" keeps the estimate.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan (2016). Spectral methods meet EM: a provably optimal
    algorithm for crowdsourcing. Journal of Machine Learning Research 17(102), 1-44.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [2, 2, 0], [1, 1, 1], [0, 0, 2]])
    >>> model = OneCoin().fit(labels)
    >>> model.labels_
    array([0, 2, 1, 0])
    >>> model.accuracy_.round(2)
    array([0.91, 0.91, 0.36])
    """

    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 1000
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = False
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.8, task=16.3, dense=11.6)
