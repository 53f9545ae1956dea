"""BoxEM: existence of objects by a two-coin model of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.types import Floats
from wisecrowd.kinds.boxes.methods.base import BoxMethod, Existence, RegionProblem
from wisecrowd.kinds.boxes.methods.coins import (
    MOST_PASSES,
    TOLERANCE,
    CoinRun,
    TwoCoinExistence,
    fit_coins,
)
from wisecrowd.kinds.boxes.methods.objects import ENOUGH, BoxObjects


@dataclass(eq=False, repr=False, kw_only=True)
class BoxEM(BoxMethod):
    r"""Objects by EM: each worker draws objects with one probability and phantoms with another.

    Boxes are grouped as in :class:`BoxConsensus`. A group :math:`o` is an object
    (:math:`z_o = 1`) or a phantom, and each worker who saw its image drew it or not:

    .. math::
        p(d_{oj} = 1 \mid z_o = 1) = s_j, \qquad p(d_{oj} = 1 \mid z_o = 0) = f_j, \qquad
        p(z_o = 1) = \pi

    given that somebody drew it, because groups that nobody drew are not seen. Pseudo-counts are
    (4, 1) of :math:`s_j`, (.5, 2) of :math:`f_j` and (1, 1) of :math:`\pi`. A group with a
    probability of at least ``threshold`` is an object.

    Use it when phantoms cost more than missed objects, or when workers differ much in how many
    objects they miss. BoxConsensus finds more objects. Cost per iteration: O(annotations + boxes).

    Parameters
    ----------
    threshold : float
        Least probability of an object.
    overlap : float
        Least mean IoU of two groups of boxes of one object.
    same_class : bool
        Whether boxes of different classes are always different objects. By default they may be
        one object, and its class is voted on.
    corners : method for numbers, or "median"
        Sides of objects: by default workers have a noise, and a bias of each side.
    labels : "vote" or a method for classes
        Class of each object.
    max_iter, tol : int, float
        Maximum number of iterations; relative gain that counts as converged.

    Attributes
    ----------
    boxes_ : (n_objects, 4)
        x, y, width and height, one task after the other, from left to right.
    n_boxes_ : (n_tasks,)
        Number of objects of each task.
    box_label_ : (n_objects,)
        Codes into ``classes_``.
    box_confidence_ : (n_objects,)
        Probability that the object exists, times the share of its class.
    box_share_ : (n_objects,)
        Share of those who saw the task who drew the object.
    draws_object_, draws_phantom_ : (n_workers,)
        :math:`s_j` and :math:`f_j`.
    object_share_ : float
        :math:`\pi`.
    detection_rate_, detection_error_, phantoms_per_image_, worker_iou_, side_bias_, n_judged_
        As of BoxConsensus: workers are judged by the votes of the others.
    corner_model_, label_model_ : fitted methods
        Those of ``corners`` and ``labels``, if these are methods.
    history_ : tuple
        Log-likelihood and log prior densities, which never decrease.

    Notes
    -----
    Without the condition that somebody drew the group, a phantom with one vote of five would mean
    that everybody draws every fifth phantom, and two votes would not make an object.

    Some objects are hard to see for everybody, so votes about an object are not independent. The
    log-odds of a group that :math:`n` workers saw are therefore divided by
    :math:`1 + .3 (n - 1)`, as if there were at most 3.3 independent votes. That changes the
    confidence and no decision at ``threshold=0.5``. The estimates of the parameters treat votes as
    independent.

    An object that one of two workers drew is usually not in the answers here, while BoxConsensus
    keeps it and says .5: there, votes decide what is kept.

    Two boxes of one worker are two objects, so that a row twice at half the weight is not the same
    as the row. A weight belongs to a worker's look at an image, not to a box.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using
    the EM algorithm. Applied Statistics 28, 20-28, for the two-coin model.

    S. Branson, G. Van Horn and P. Perona (2017). Lean crowdsourcing: combining humans and machines
    in an online system. CVPR, for a probabilistic model of boxes.

    Examples
    --------
    >>> task, worker = ["a"] * 4, ["ann", "bob", "cem", "cem"]
    >>> x, y, width, height = [10, 12, 11, 60], [20, 20, 22, 5], [30, 30, 31, 9], [40, 41, 40, 9]
    >>> model = BoxEM().fit((task, worker, x, y, width, height))
    >>> model.boxes_.round()
    array([[11., 21., 30., 40.]])
    >>> bool(model.draws_phantom_[2] > model.draws_phantom_[0])
    True
    """

    threshold: float = 0.5
    max_iter: int = MOST_PASSES
    tol: float = TOLERANCE

    promises: ClassVar[Tags] = Tags(
        monotone=True, likelihood=True, exact_replication=False, pooled=True
    )

    def _run(self, objects: BoxObjects) -> CoinRun:
        return fit_coins(objects, self.max_iter, self.tol)

    def _decided(self, objects: BoxObjects, probability: Floats) -> Existence:
        kept = (objects.votes > 0) & (probability >= self.threshold - ENOUGH)
        return Existence(probability, kept)

    def _log_likelihood(self, problem: RegionProblem) -> float:
        objects = self._objects(problem.data)
        return TwoCoinExistence(objects).expect(self._coins(problem.data.n_workers)).log_likelihood
