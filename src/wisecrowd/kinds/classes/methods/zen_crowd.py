"""ZenCrowd's model of worker reliability, fitted by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.inference.engine import MemoryShards
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.methods.one_coin import CoinParams, CoinState, OneCoinEM, OneCoinModel


@dataclass(eq=False, repr=False, kw_only=True)
class ZenCrowd(OneCoinEM):
    r"""Worker reliabilities by maximum likelihood, with a uniform class prior.

    .. math::
        q_i(k) \propto \prod_j p_j^{1[y_{ij} = k]}
        \Bigl( \frac{1 - p_j}{K - 1} \Bigr)^{1[y_{ij} \ne k]}, \qquad
        p_j = \frac{1}{n_j} \sum_i q_i(y_{ij}), \qquad p_j = 0.8 \;\text{at first}

    Use it when you compare results with the literature's "ZC", or when rare classes must not lose
    to frequent ones. Cost per iteration: O(annotations) for any number of classes.

    Parameters
    ----------
    initial_accuracy : float
        The reliability of all workers at the start, between 0 and 1.
    prior : None, "weak", (a, b) or :class:`~wisecrowd.inference.priors.OneCoinPrior`
        Pseudo-counts of correct and wrong labels; None, the paper's choice, is maximum likelihood.
    max_iter, tol : int, float
        Maximum number of passes over the annotations; relative gain that counts as converged.
    n_init : int
        Number of starts: the paper's, then random reliabilities; the best objective wins.
    accelerate : bool
        Extrapolate slow runs (SQUAREM). An extrapolation that lowers the objective is rejected,
        and counts as a pass.
    random_state : int, Generator or None

    Attributes
    ----------
    accuracy_ : (n_workers,)
        The reliabilities :math:`p_j`.
    confusion_ : (n_workers, n_classes, n_classes)
        The confusion matrices given by the reliabilities, if they have at most 10⁷ numbers.
    class_prior_ : (n_classes,)
        Uniform.
    probas_ : (n_tasks, n_classes)
        Dense up to 5·10⁷ numbers; beyond that, sparse (CSR) over the received labels of a task.
        Rows then sum to one minus the probability that the other classes share equally.

    Notes
    -----
    This is :class:`~wisecrowd.aggregation.OneCoin` with ``prior=None`` and
    ``class_prior="uniform"``, started from equal reliabilities instead of the soft vote, as in the
    survey of Zheng et al.; from the same start the two agree. The paper's factor graph also links
    tasks to each other (two entities may be the same, or exclude one another). That part is for
    entity linking and is left out. The paper's prior on links corresponds to the task prior here.

    Without pseudo-counts, a worker who always agrees with confident labels ends at a reliability of
    one and overrules all others: on crowds with few labels per worker, prefer OneCoin.

    References
    ----------
    G. Demartini, D. E. Difallah and P. Cudré-Mauroux (2012). ZenCrowd: leveraging probabilistic
    reasoning and crowdsourcing techniques for large-scale entity linking. WWW, 469-478.

    Y. Zheng, G. Li, Y. Li, C. Shan and R. Cheng (2017). Truth inference in crowdsourcing: is the
    problem solved? PVLDB 10(5), 541-552.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = ZenCrowd().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.accuracy_.round(2)
    array([1. , 1. , 0.5])
    """

    initial_accuracy: float = 0.8
    prior: Any = None
    max_iter: int = 1000
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = False
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.3, task=15.6, dense=11.5)
    class_prior = "uniform"
    limits: ClassVar[Limits] = {"initial_accuracy": Number(0.0, 1.0)}

    def _first_params(
        self, model: OneCoinModel, shards: MemoryShards, states: list[CoinState], start: Start
    ) -> CoinParams:
        if start.given is not None or model.fixed_class is None:
            return super()._first_params(model, shards, states, start)
        equal = np.full_like(model.weights, self.initial_accuracy)
        return model.params(equal, model.fixed_class)
