"""BoxMethod: base of the methods that group boxes into objects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.parameter_checks import Flag, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit, choose_labels, confidence_of, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue, number_between
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.boxes.answers import PHANTOM, RegionAnswers
from wisecrowd.kinds.boxes.container import COORDINATES, CrowdRegions
from wisecrowd.kinds.boxes.methods.coins import CoinRun, Coins, existence_probability, fit_coins
from wisecrowd.kinds.boxes.methods.objects import ENOUGH, BoxObjects
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.prior import class_prior
from wisecrowd.kinds.numbers.answers import number_prior

RegionProblem = Problem[CrowdRegions, None]
MEDIAN, VOTE = "median", "vote"
SIDES_BY = "gaussian-em"
SIDE_VARIANCE = 1.0  # of a true side around the median, in units of the object: hardly a prior
MATCHED, MISSED, EXTRA = "matched", "missed", "phantom"


class Existence(NamedTuple):
    """Which candidates are objects.

    Attributes
    ----------
    probability : (n_candidates,)
    kept : (n_candidates,) bool
    """

    probability: Floats
    kept: NDArray[np.bool_]


@dataclass(eq=False, repr=False, kw_only=True)
class BoxMethod(Aggregator):
    """Base of the methods for boxes; a method says which candidates are objects."""

    threshold: float = 0.4
    overlap: float = 0.4
    same_class: bool = False
    corners: Any = SIDES_BY
    labels: Any = VOTE

    takes: ClassVar[str] = "boxes"
    # Rows are boxes, so that a weight belongs to several rows; the checks of boxes repeat looks.
    promises: ClassVar[Tags] = Tags(exact_replication=False)
    saves: ClassVar[dict[str, Saved]] = {
        "corner_model_": SavedValue(
            lambda value: isinstance(value, Aggregator), "a method",
            optional=lambda method: method.corners == MEDIAN,
        ),
        "label_model_": SavedValue(
            lambda value: isinstance(value, Aggregator), "a method", optional=True
        ),
        "class_totals_": SavedArray("K", "amount"),
        "draws_object_": SavedArray("J", "probability"),
        "draws_phantom_": SavedArray("J", "probability"),
        "object_share_": number_between(0.0, 1.0),
    }  # fmt: skip

    limits: ClassVar[Limits] = {
        "threshold": Number(0.0, 1.0),
        "overlap": Number(0.01, 1.0),
        "same_class": Flag(),
    }

    def __post_init__(self) -> None:
        for name, word in (("corners", MEDIAN), ("labels", VOTE)):
            value = getattr(self, name)
            if isinstance(value, str) and value != word:
                setattr(self, name, get_method(value)())

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; methods may also be given by their names."""
        for name in ("corners", "labels"):
            if name in params:
                setattr(self, name, params.pop(name))
        self.__post_init__()
        return super().set_params(**params)

    def tags(self) -> Tags:
        """Return the tags; those of the methods for corners and labels count too."""
        inside = [m.tags() for m in (self.corners, self.labels) if isinstance(m, Aggregator)]
        return replace(
            self.promises,
            inductive=self.promises.inductive and all(one.inductive for one in inside),
            stochastic=any(one.stochastic for one in inside),
            pooled=self.promises.pooled or any(one.pooled for one in inside),
        )

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name, word, kind, example in (
            ("corners", MEDIAN, "numbers", "gaussian-em"), ("labels", VOTE, "labels", "dawid-skene")
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, Aggregator) and value.takes == kind:
                _copy(value)._validate_parameters()
            elif not (isinstance(value, str) and value == word):
                named = for_reader(f"{get_method(example)()!r}", parameter(name, example))
                raise ParameterError(
                    f"{name} is {value!r}; give {word!r} or a method for {kind}, such as {named}."
                )

    def _saved_fault(self) -> str:
        for name, given in (("corner_model_", self.corners), ("label_model_", self.labels)):
            inside = vars(self).get(name)
            if inside is None:
                continue
            if type(inside) is not type(given) or not inside.__sklearn_is_fitted__():
                return f"{name} is not that of the parameter"
            if len(inside.workers_) != len(self.workers_):
                return f"{name} does not fit workers_"
        return ""

    # ----------------------------------------------------------------------------------- fit

    def _decided(self, objects: BoxObjects, probability: Floats) -> Existence:
        """Return which candidates are objects, given their probabilities by the two-coin model."""
        raise TypeError("A method for boxes must define _decided.")

    def _run(self, objects: BoxObjects) -> CoinRun:
        """Return how often each worker draws objects and phantoms."""
        return fit_coins(objects)

    def _coins(self, n_workers: int) -> Coins:
        """Return the parameters of the fit; an unknown worker has the mean of the others."""
        more = n_workers - len(self.draws_object_)
        drawn, invented = (
            np.append(rate, np.full(more, rate.mean()))
            for rate in (self.draws_object_, self.draws_phantom_)
        )
        return Coins(drawn, invented, self.object_share_)

    def _existence(self, objects: BoxObjects, coins: Coins) -> Existence:
        return self._decided(objects, existence_probability(objects, coins))

    def _objects(self, data: CrowdRegions) -> BoxObjects:
        return BoxObjects.of(data, self.overlap, same_class=self.same_class)

    def _fit(self, problem: RegionProblem) -> Fit:
        data = problem.data
        objects = self._objects(data)
        run = self._run(objects)
        extra: dict[str, Any] = {
            "draws_object": run.coins.object, "draws_phantom": run.coins.phantom,
            "object_share": run.coins.share,
        }  # fmt: skip
        totals = np.bincount(data.label, objects.weight, data.n_classes).astype(np.float64)
        extra["class_totals"] = totals
        sides = objects.sides
        if self.corners != MEDIAN and objects.n_candidates:
            model = _copy(self.corners)
            sides = _moved(objects, _fit_inside(model, _side_problem(model, objects)).answers)
            extra["corner_model"] = model
        probas = _vote_shares(objects)
        if self.labels != VOTE and objects.n_candidates:
            model = _copy(self.labels)
            probas = dense_rows(_fit_inside(model, _class_problem(model, objects)).probas)
            extra["label_model"] = model
        if self.corners != MEDIAN and "corner_model" not in extra:
            extra["corner_model"] = _copy(self.corners)
        answers = _answers(objects, self._existence(objects, run.coins), sides, probas, totals)
        lost = objects.lost_looks()
        return Fit(
            answers, extra=extra | objects.worker_rates(0.5, sides),
            findings=() if lost is None else (lost,), n_iter=len(run.history),
            converged=run.converged, history=run.history,
        )  # fmt: skip

    def _predict(self, problem: RegionProblem) -> RegionAnswers:
        objects = self._objects(problem.data)
        sides, probas = objects.sides, _vote_shares(objects)
        if objects.n_candidates:
            if self.corners != MEDIAN:
                model = self.corner_model_
                sides = _moved(objects, model._predict(_side_problem(model, objects)))
            if self.labels != VOTE and "label_model_" in vars(self):
                model = self.label_model_
                found = model._predict(_class_problem(model, objects))
                probas = dense_rows(ClassAnswers.of(found).probas)
        found = self._existence(objects, self._coins(problem.data.n_workers))
        return _answers(objects, found, sides, probas, self.class_totals_)

    # --------------------------------------------------------------------------- assignments

    def assignment_columns(self, data: Any) -> dict[str, NDArray[Any]]:
        """Return who drew what: every object with every worker who saw its task, and phantoms.

        Parameters
        ----------
        data : CrowdRegions, or what ``fit`` takes
            The data of the fit, or other images.

        Returns
        -------
        dict
            Columns ``task``, ``object`` (counted from 1 in each task, as in the main table),
            ``worker``, ``status`` ("matched", "missed" or "phantom") and the worker's own box; a
            missed object has no box and a phantom no object.
        """
        self._require_fitted()
        known = self._kind().gate(data).in_fitted_ids(self)
        problem: Any = self._problem(known, None)
        answers = self._predict(problem)
        look, begin = ragged_places(known.indptr, answers.task)
        size = np.diff(begin)
        thing = np.repeat(np.arange(len(size)), size)
        box = np.full(len(thing), -1, dtype=np.int64)
        own = np.flatnonzero(answers.box_object != PHANTOM)
        matched = answers.box_object[own]
        first = known.indptr[answers.task[matched]]
        box[begin[matched] + known.box_annotation[own] - first] = own
        extra = np.flatnonzero(answers.box_object == PHANTOM)
        thing = np.append(thing, np.full(len(extra), -1))
        look, box = np.append(look, known.box_annotation[extra]), np.append(box, extra)
        task = known.task[look]
        order = np.lexsort((box, known.worker[look], np.where(thing < 0, len(size), thing), task))
        return _assignment_table(known, answers, thing[order], look[order], box[order])


def _assignment_table(
    data: CrowdRegions, answers: RegionAnswers, thing: Longs, look: Longs, box: Longs
) -> dict[str, NDArray[Any]]:
    task, extra, missed = data.task[look], thing < 0, box < 0
    number = np.full(len(thing), None, dtype=object)
    number[~extra] = (thing - answers.pointer[task] + 1)[~extra].tolist()
    sides: dict[str, NDArray[Any]] = {}
    for k, name in enumerate(COORDINATES):
        sides[name] = np.full(len(box), None, dtype=object)
        sides[name][~missed] = data.boxes[box[~missed], k].tolist()
    status = np.where(extra, EXTRA, np.where(missed, MISSED, MATCHED)).astype(object)
    labels = np.full(len(box), None, dtype=object)
    labels[~missed] = data.classes[data.label[box[~missed]]].tolist()
    return {
        "task": data.tasks[task], "object": number, "worker": data.workers[data.worker[look]],
        "status": status, **sides, "label": labels,
    }  # fmt: skip


def vote_confidence(objects: BoxObjects) -> Floats:
    """Return the share of those who saw a task who drew a candidate, with half a vote each way."""
    return np.asarray((objects.votes + 0.5) / (objects.seen + 1.0))


def enough_votes(objects: BoxObjects, threshold: float) -> NDArray[np.bool_]:
    """Return which candidates at least this share of those who saw the task drew."""
    return (objects.votes > 0) & (objects.votes >= threshold * objects.seen - ENOUGH)


def _vote_shares(objects: BoxObjects) -> Floats:
    """Return (n_candidates, n_classes) shares of votes, with one vote spread over all classes."""
    data, K = objects.data, objects.data.n_classes
    cell = objects.object * K + data.label
    votes = np.bincount(cell, objects.weight, objects.n_candidates * K).reshape(-1, K)
    return np.asarray((votes + 1.0 / K) / (votes.sum(axis=1, keepdims=True) + 1.0))


def _answers(
    objects: BoxObjects, found: Existence, sides: Floats, probas: Floats, totals: Floats
) -> RegionAnswers:
    if objects.n_candidates == 0:
        label, share = np.zeros(0, dtype=np.int32), np.zeros(0)
    else:
        label, _ = choose_labels(probas, totals)
        share = confidence_of(probas, label)
    confidence = np.clip(found.probability * share, 0.0, 1.0)
    return objects.answers(found.kept, sides, label.astype(np.int64), confidence)


# ------------------------------------------------------------------------------- inner methods


def _copy(method: Aggregator) -> Aggregator:
    copy: Aggregator = type(method)(**method.get_params(deep=False))
    return copy


def _fit_inside(model: Aggregator, problem: Any) -> Fit:
    """Fit a method for numbers or classes without checks, and publish its result on it."""
    found = model._fit(problem)
    model._publish(problem.data, replace(found, findings=()))
    return found


def _side_problem(model: Aggregator, objects: BoxObjects) -> Any:
    numbers = objects.side_numbers()
    prior = None
    if getattr(model, "takes_prior", False):
        prior = (np.zeros(numbers.n_tasks), np.full(numbers.n_tasks, SIDE_VARIANCE))
    return model._problem(numbers, number_prior(prior, None, numbers))


def _class_problem(model: Aggregator, objects: BoxObjects) -> Any:
    labels = objects.labels()
    return model._problem(labels, class_prior(None, None, labels))


def _moved(objects: BoxObjects, answers: Any) -> Floats:
    """Return the sides that a method for numbers estimates; boxes never turn inside out."""
    away = answers.values.reshape(-1, 4)
    sides = objects.sides + away * objects.size
    good = (sides[:, 2:] > sides[:, :2]).all(axis=1)
    return np.where(good[:, None], sides, objects.sides)
