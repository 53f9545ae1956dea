"""BoxEM: existence of objects by a two-coin model of workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.saved_attributes import Saved, SavedArray, number_between
from wisecrowd.families.box_method import BoxMethod, Existence, RegionProblem
from wisecrowd.families.box_objects import ENOUGH, BoxObjects

Floats = NDArray[np.float64]
DRAWN = (4.0, 1.0)  # pseudo-counts of objects that a worker draws and misses
INVENTED = (0.5, 2.0)  # pseudo-counts of phantoms that a worker draws and does not draw
DEPENDENCE = 0.3  # of votes about one object; n votes count as n / (1 + DEPENDENCE (n - 1))
LEAST = 1e-12  # probability that somebody draws a candidate of an image with annotations
REAL = 1.0  # pseudo-count of objects, and of phantoms, among the candidates


class Coins(NamedTuple):
    """Parameters: probability of drawing an object and a phantom (J,), and share of objects."""

    object: Floats
    phantom: Floats
    share: float


class Expected(NamedTuple):
    """Log-odds that candidates are objects (n_candidates,), and their log-likelihood."""

    log_odds: Floats
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class TwoCoinExistence:
    """The two-coin model of who drew which candidate, given that somebody drew it.

    Costs per pass are those of the annotations and boxes: all who saw a task count as if they had
    not drawn any of its candidates, and every box corrects that for its own candidate.
    """

    objects: BoxObjects

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """(n_candidates,): whether somebody with a weight drew the candidate."""
        return self.objects.votes > 0

    def expect(self, coins: Coins) -> Expected:
        """Return the posterior log-odds of candidates: the E-step."""
        prior = np.log(coins.share) - np.log1p(-coins.share)
        as_object, as_phantom = self._log_density(coins.object), self._log_density(coins.phantom)
        log_odds = prior + as_object - as_phantom
        total = np.log1p(-coins.share) + as_phantom + np.logaddexp(0.0, log_odds)
        return Expected(log_odds, float(np.sum(total[self.known])))

    def _log_density(self, rate: Floats) -> Floats:
        """Return the log-probability of who drew each candidate, given that somebody did."""
        objects, data = self.objects, self.objects.data
        drawn, missed = np.log(rate), np.log1p(-rate)
        none = np.bincount(data.task, data.weights * missed[data.worker], data.n_tasks)
        change = objects.weight * (drawn - missed)[data.box_worker]
        votes = np.bincount(objects.object, change, objects.n_candidates)
        return np.asarray(none[objects.task] + votes - np.log(self._seen(rate))[objects.task])

    def _seen(self, rate: Floats) -> Floats:
        """Return the probability that somebody draws a candidate of each task (n_tasks,)."""
        data = self.objects.data
        none = np.bincount(data.task, data.weights * np.log1p(-rate)[data.worker], data.n_tasks)
        return np.maximum(-np.expm1(none), LEAST)

    def update(self, probability: Floats, coins: Coins | None = None) -> Coins:
        """Return the parameters that maximise the expected objective: the M-step.

        For every candidate that was drawn with probability p there are expected to be (1 - p) / p
        that nobody drew; ``coins`` are the parameters that expect them.
        """
        rates = []
        for which, (yes, no) in enumerate((DRAWN, INVENTED)):
            count = (probability if which == 0 else 1 - probability) * self.known
            seen = np.ones(self.objects.data.n_tasks)
            if coins is not None:
                seen = self._seen(coins.object if which == 0 else coins.phantom)
            drew, saw = self._counts(count, count / seen[self.objects.task])
            rates.append((drew + yes) / (saw + yes + no))
        real, total = probability[self.known].sum(), self.known.sum()
        return Coins(rates[0], rates[1], float((real + REAL) / (total + 2 * REAL)))

    def _counts(self, count: Floats, with_unseen: Floats) -> tuple[Floats, Floats]:
        """Return how many of the expected candidates each worker drew, and how many he saw."""
        objects, data = self.objects, self.objects.data
        J = data.n_workers
        drew = np.bincount(data.box_worker, objects.weight * count[objects.object], J)
        per_task = np.bincount(objects.task, with_unseen, data.n_tasks)
        saw = np.bincount(data.worker, data.weights * per_task[data.task], J)
        return drew.astype(np.float64), saw.astype(np.float64)

    def objective(self, coins: Coins, log_likelihood: float) -> float:
        """Return the log-likelihood with the log prior densities of the parameters."""
        value = log_likelihood + REAL * (np.log(coins.share) + np.log1p(-coins.share))
        for rate, (yes, no) in ((coins.object, DRAWN), (coins.phantom, INVENTED)):
            value += float((yes * np.log(rate) + no * np.log1p(-rate)).sum())
        return float(value)


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
    corners : "median" or a method for numbers
        With "gaussian-em", workers have a noise, and a bias of each side.
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
    >>> model.boxes_
    array([[11., 20., 31., 41.]])
    >>> bool(model.draws_phantom_[2] > model.draws_phantom_[0])
    True
    """

    threshold: float = 0.5
    max_iter: int = 500
    tol: float = 1e-7

    promises: ClassVar[Tags] = Tags(
        monotone=True, likelihood=True, exact_replication=False, pooled=True
    )
    saves: ClassVar[dict[str, Saved]] = {
        "draws_object_": SavedArray("J", "probability"),
        "draws_phantom_": SavedArray("J", "probability"),
        "object_share_": number_between(0.0, 1.0),
    }

    def _existence(self, objects: BoxObjects) -> tuple[Existence, dict[str, Any]]:
        model = TwoCoinExistence(objects)
        probability = objects.votes / np.maximum(objects.seen, ENOUGH)
        history: list[float] = []
        coins, converged = model.update(probability), False
        while len(history) < self.max_iter and not converged:
            coins = model.update(probability, coins)
            found = model.expect(coins)
            probability = _logistic(found.log_odds)
            history.append(model.objective(coins, found.log_likelihood))
            gain = history[-1] - history[-2] if len(history) > 1 else np.inf
            converged = gain <= self.tol * max(abs(history[-1]), 1.0)
        extra = {
            "draws_object": coins.object, "draws_phantom": coins.phantom,
            "object_share": coins.share,
        }  # fmt: skip
        return self._decided(objects, coins), {
            "n_iter": len(history), "converged": converged, "history": tuple(history),
            "extra": extra,
        }  # fmt: skip

    def _coins(self, n_workers: int) -> Coins:
        """Return the parameters of the fit; an unknown worker has the mean of the others."""
        more = n_workers - len(self.draws_object_)
        drawn, invented = (
            np.append(rate, np.full(more, rate.mean()))
            for rate in (self.draws_object_, self.draws_phantom_)
        )
        return Coins(drawn, invented, self.object_share_)

    def _known_existence(self, objects: BoxObjects) -> Existence:
        return self._decided(objects, self._coins(objects.data.n_workers))

    def _decided(self, objects: BoxObjects, coins: Coins) -> Existence:
        """Return the probabilities of candidates, with votes that depend on each other."""
        effect = 1 + DEPENDENCE * (np.maximum(objects.seen, 1.0) - 1)
        probability = _logistic(TwoCoinExistence(objects).expect(coins).log_odds / effect)
        kept = (objects.votes > 0) & (probability >= self.threshold - ENOUGH)
        return Existence(probability, kept)

    def _log_likelihood(self, problem: RegionProblem) -> float:
        objects = self._objects(problem.data)
        return TwoCoinExistence(objects).expect(self._coins(problem.data.n_workers)).log_likelihood


def _logistic(log_odds: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))
