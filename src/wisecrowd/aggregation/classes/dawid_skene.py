"""Dawid and Skene's confusion-matrix model, fitted by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.problem import Problem
from wisecrowd.families.confusion import DirichletModel
from wisecrowd.families.incremental_confusion import IncrementalConfusionEM
from wisecrowd.inference.priors import pseudo_counts

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class DawidSkene(IncrementalConfusionEM):
    r"""A full confusion matrix per worker, by maximum likelihood or maximum a posteriori EM.

    .. math::
        z_i \sim Cat(\pi), \qquad y_{ij} \mid z_i = k \sim Cat(\theta_{jk\cdot}), \qquad
        \theta_{jkl} \propto \sum_{i: y_{ij} = l} q_i(k) + \alpha_{kl}

    Use it when workers confuse particular classes and have a few dozen labels each. Cost per
    iteration: O(annotations × classes); memory: workers × classes².

    Parameters
    ----------
    prior : "weak", None, number, (n_classes, n_classes) array or prior object
        Pseudo-counts :math:`\alpha`. "weak" has 2 on the diagonal and 2 / n_classes elsewhere; None
        is maximum likelihood; :class:`~wisecrowd.inference.priors.History` uses a previous fit.
    class_prior, max_iter, tol, n_init, accelerate, random_state
        See :class:`~wisecrowd.families.confusion.ConfusionEM`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        ``confusion_[j, k, l]`` = p(label l | class k, worker j).
    class_prior_ : (n_classes,)

    Notes
    -----
    The paper maximises the likelihood. On sparse crowds with many classes maximum likelihood
    degenerates, hence the weak default prior.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using
    the EM algorithm. Applied Statistics 28(1), 20-28.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> DawidSkene().fit(labels).labels_
    array([0, 1, 0, 1])
    """

    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.0, task=13.6, cell=10.8, confusion=94.9)

    def _model(self, problem: Problem) -> DirichletModel:
        alpha = pseudo_counts(self.prior, problem.data)
        return DirichletModel(**self._shape(problem), alpha=alpha)
