"""Base of the methods with a bias and a noise per worker: the fit, its results and predictions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Flag, Limits, Number
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import TEXTS, Saved, SavedArray, number_between
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards, rows_into
from wisecrowd.inference.loop import LoopResult, iterate
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.base import (
    NumberAggregator,
    NumberProblem,
    TaskEstimates,
    one_label_finding,
    shared_bias_findings,
)
from wisecrowd.kinds.numbers.methods.facts import (
    has_different_scales,
    least_noise,
    least_variance,
    overall_mean,
    overall_variance,
    scale_findings,
    unknown_variance,
)
from wisecrowd.kinds.numbers.methods.intervals import (
    MOST_FREEDOM,
    independent_errors,
    joint_variance,
    task_errors,
)
from wisecrowd.kinds.numbers.methods.worker_noise import Apart, NoiseModel, NoiseParams
from wisecrowd.kinds.numbers.scorer import APART

FOLLOW = "Values follow the majority"  # in the finding on those who stand apart


@dataclass(eq=False, repr=False, kw_only=True)
class NoiseEM(NumberAggregator):
    """Base of the methods with a bias and a noise per worker."""

    prior: float = 1.0
    bias: bool = True
    max_iter: int = 500
    tol: float = 1e-6

    takes_prior: ClassVar[bool] = True
    saves: ClassVar[dict[str, Saved]] = {
        "questions_": TEXTS,
        "question_bias_": SavedArray("J Q"),
        "question_bias_variance_": SavedArray("J Q", "amount"),
        "question_noise_": SavedArray("Q", "positive"),
        "truth_mean_": SavedArray("Q"),
        "truth_variance_": SavedArray("Q", "positive"),
        "bias_variance_": SavedArray("Q", "amount"),
        "level_variance_": SavedArray("Q", "amount"),
        "typical_noise_": number_between(1e-300, np.inf),
        "pivot_": SavedArray("Q"),
        "joint_variance_": SavedArray("Q P P", optional=True),
        "noise_freedom_": SavedArray("Q", "amount", optional=True),
        "bias_freedom_": SavedArray("Q", "amount", optional=True),
    }

    limits: ClassVar[Limits] = {"prior": Number(0.0), "bias": Flag()}

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"Q": max(len(self.questions_), 1), "P": sizes["J"] + 1}

    def _model(self, problem: NumberProblem, pivot: Floats) -> Any:
        raise TypeError(f"{type(self).__name__} must define _model.")

    def _shape(self, problem: NumberProblem, pivot: Floats) -> dict[str, Any]:
        """Return the fields of the model that all kinds of noise share."""
        prior = problem.prior
        return {
            "n_workers": problem.data.n_workers,
            "pivot": pivot,
            "strength": float(self.prior),
            "has_bias": bool(self.bias),
            "fixed_level": prior.given or prior.gold is not None,
            "floor": least_variance(problem.data),
            "spread": 0.0 if prior.given else overall_variance(problem.data),
            "least_noise": least_noise(problem.data),
            "apart": has_different_scales(problem.data),
            "least": unknown_variance(problem.data),
        }

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        data = problem.data
        model, shards, run, apart = self._iterated(problem)
        params, level = run.params, model.level_variance(run.params)
        answers = TaskEstimates(np.empty(data.n_tasks), np.empty(data.n_tasks))
        shards.collect(model, "answer", run.states, params, rows_into(*answers[:2]))
        answers, shared = self._with_errors(problem, model, params, answers, None, level)
        answers = _placed(answers, data, model.pivot, params, problem.prior.given)
        return self._fit_of(data, model, run, apart, answers, shared)

    def _iterated(
        self, problem: NumberProblem
    ) -> tuple[NoiseModel, MemoryShards, LoopResult, list[Apart]]:
        """Return the model, its shards, the run to the fixed point, and who stands apart there."""
        data = problem.data
        pivot = question_means(data)
        model = self._model(problem, pivot)
        shards: MemoryShards = problem.cut(8 * data.n_workers * len(pivot))
        states = shards.begin(model)
        before = vars(self).get("_before")
        if before is None:
            _, stats = shards.map_reduce(model, "start", states, None)
            params = model.first_params(stats, overall_variance(data))
        else:
            params = before._params_at(problem, pivot)
        run = iterate(
            model, shards, params, states, max_iter=self.max_iter, tol=self.tol,
            settled=lambda stats, params: params.moved < self.tol,
        )  # fmt: skip
        params, apart = model.with_majority_level(run.params)
        return model, shards, replace(run, params=params), apart

    def _fit_of(
        self, data: CrowdNumbers, model: NoiseModel, run: LoopResult, apart: list[Apart],
        answers: Any, shared: dict[str, Floats],
    ) -> Fit:  # fmt: skip
        """Return the fit of a run; ``shared`` is what predictions need beside its parameters."""
        level = model.level_variance(run.params)
        return Fit(
            answers,
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            findings=tuple(apart_finding(data, one, self.scale) for one in apart),
            extra=self._learned(data, model.pivot, run) | {"level_variance": level} | shared,
        )

    def _with_errors(
        self, problem: NumberProblem, model: Any, params: NoiseParams, estimates: TaskEstimates,
        known: Mapping[str, Floats] | None, level: Floats,
    ) -> tuple[TaskEstimates, dict[str, Floats]]:  # fmt: skip
        """Return estimates with the variance of biases and level, and what predictions need.

        ``known`` is what a fit returned here; None computes it from the labels of the problem.
        """
        data, question = problem.data, problem.data.questions[1]
        variance, freedom = estimates.variance.copy(), np.full(data.n_tasks, MOST_FREEDOM)
        joints, of_noise, of_bias = [], np.zeros(n := len(model.pivot)), np.zeros(n)
        for q in range(n):
            tasks = slice(None) if question is None else np.flatnonzero(question == q)
            design = model.design(problem, params, estimates, q)
            joint = joint_variance(design) if known is None else None
            if known is None:
                of_noise[q], of_bias[q] = model.freedom(design, params, q)
            else:
                of_noise[q], of_bias[q] = known["noise_freedom"][q], known["bias_freedom"][q]
                joint = known["joint_variance"][q] if "joint_variance" in known else None
            joints.append(joint)
            found = (
                independent_errors(design, params.bias_variance[:, q], level[q])
                if joint is None else task_errors(design, joint)
            )  # fmt: skip
            variance[tasks] = found.variance
            freedom[tasks] = found.freedom(of_noise[q], of_bias[q])
        shared = {"noise_freedom": of_noise, "bias_freedom": of_bias}
        exact = [joint for joint in joints if joint is not None]
        if len(exact) == len(joints):
            shared["joint_variance"] = np.stack(exact)
        return TaskEstimates(estimates.mean, variance, freedom), shared

    def _fit_pack(self, problem: NumberProblem) -> Fit:
        """Return the fit to a pack, after a survey of its numbers."""
        if self.scale != "linear":
            raise ParameterError(
                f"{parameter('scale', self.scale)} needs all numbers in memory; pack their "
                "logarithms, or read the pack into memory."
            )
        pack: Any = problem.data
        data = pack.surveyed(problem.cut(pack.n_workers))
        model, shards, run, apart = self._iterated(replace(problem, data=data))
        shards.collect(model, "placed_answer", run.states, run.params, data.parts)
        found = self._fit_of(data, model, run, apart, data.parts, {})
        notes = scale_findings(data, data.known_facts.scales)
        notes += [*shared_bias_findings(problem.prior), packed_errors()]
        if data.pack.summary.labels_per_task[1] < 2:
            notes.append(one_label_finding())
        return replace(found, findings=(*found.findings, *notes))

    def _continued(self, problem: NumberProblem, passes: int) -> Fit:
        """Return the fit after some passes from the parameters of the previous fit."""
        made = copy.deepcopy(self).set_params(max_iter=passes)
        made._forget()
        vars(made)["_before"] = self
        return made._fit(problem)

    def _params_at(self, problem: NumberProblem, pivot: Floats) -> NoiseParams:
        """Return the fitted parameters for a model with another pivot; new workers join."""
        params = self._fitted(problem)[1]
        spread = np.where(params.bias_variance > 0, params.bias_variance, params.omega)
        mean = self.truth_mean_[self._question_places(problem.data)] - pivot
        return replace(params, mean=mean, bias_variance=spread)

    def _learned(self, data: CrowdNumbers, pivot: Floats, run: LoopResult) -> dict[str, Any]:
        """Return the attributes that the fit publishes."""
        params: NoiseParams = run.params
        known = params.count.sum(axis=1) > 0
        weight = 1 / params.noise
        return {
            "bias": worker_mean(params.bias, params.count),
            "noise": np.sqrt(params.noise),
            "worker_weight": weight / max(float(weight[known].sum()), 1e-300),
            "questions": data.questions[0],
            "question_bias": params.bias,
            "question_bias_variance": params.bias_variance,
            "question_noise": np.sqrt(params.factor),
            "truth_mean": pivot + params.mean,
            "truth_variance": params.variance,
            "bias_variance": params.omega if self.bias else np.zeros(len(pivot)),
            "typical_noise": float(np.sqrt(params.typical)),
            "pivot": pivot,
        }

    # ----------------------------------------------------------------------------- new tasks

    def _fitted(self, problem: NumberProblem) -> tuple[NoiseModel, NoiseParams]:
        """Return the model and the fitted parameters in the questions of new data.

        Workers that the fit has not seen share the last row: no bias, typical noise, and the
        variance of the biases in addition.
        """
        data = problem.data
        place = self._question_places(data)
        pivot = self.pivot_[place]
        model = self._model(problem, pivot)
        factor, omega = self.question_noise_[place] ** 2, self.bias_variance_[place]
        J, Q = data.n_workers, len(place)
        bias, noise = np.zeros((J, Q)), np.full(J, self.typical_noise_**2 + omega.mean())
        known = len(self.noise_)
        bias[:known], noise[:known] = self.question_bias_[:, place], self.noise_**2
        spread = np.zeros((J, Q))
        spread[:known] = self.question_bias_variance_[:, place]
        cell = data.worker.astype(np.int64) * Q
        question = data.questions[1]
        if question is not None:
            cell += question[data.task]
        count = np.bincount(cell, data.weight, J * Q).reshape(J, Q).astype(np.float64)
        return model, NoiseParams(
            bias=bias, bias_variance=spread, noise=noise, factor=factor,
            mean=self.truth_mean_[place] - pivot, variance=self.truth_variance_[place],
            omega=omega, typical=self.typical_noise_**2, count=count,
        )  # fmt: skip

    def _question_places(self, data: CrowdNumbers) -> NDArray[np.intp]:
        """Return the fitted questions of the questions of new data."""
        names, fitted = data.questions[0], list(self.questions_)
        if not names or not fitted:
            if len(fitted) > 1:
                raise DataError(
                    "The fit has questions and the new labels have none; add the column question."
                )
            return np.zeros(max(len(names), 1), dtype=np.intp)
        unknown = [name for name in names if name not in fitted]
        if unknown:
            raise DataError(
                f"The question {unknown[0]!r} was not in the fit; give labels for one of "
                f"{describe_ids(np.array(fitted, dtype=object))}."
            )
        return np.array([fitted.index(name) for name in names], dtype=np.intp)

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        model, params = self._fitted(problem)
        data = problem.data
        shards: MemoryShards = problem.cut(8 * data.n_workers * len(model.pivot))
        estimates = TaskEstimates(np.empty(data.n_tasks), np.empty(data.n_tasks))
        shards.collect(model, "answer", shards.begin(model), params, rows_into(*estimates[:2]))
        place = self._question_places(data)
        known = {
            name: vars(self)[f"{name}_"][place]
            for name in ("noise_freedom", "bias_freedom", "joint_variance")
            if f"{name}_" in vars(self)
        }
        level = self.level_variance_[place]
        if "noise_freedom" in known:
            estimates = self._with_errors(problem, model, params, estimates, known, level)[0]
        else:  # fitted to a pack
            estimates = estimates._replace(
                variance=estimates.variance + _by_question(level, data.questions[1])
            )
        return _placed(estimates, data, model.pivot, params, problem.prior.given)

    def _log_likelihood(self, problem: NumberProblem) -> float:
        scaled = self._on_scale(problem)
        model, params = self._fitted(scaled)
        shards: MemoryShards = scaled.cut(8 * params.count.size)
        _, stats = shards.map_reduce(model, "local_step", shards.begin(model), params)
        # The density of a label is that of its logarithm over the label.
        jacobian = (scaled.data.weights * scaled.data.value).sum() if self.scale == "log" else 0.0
        return model.log_likelihood(stats, params) - float(jacobian)


def question_means(data: CrowdNumbers) -> Floats:
    """Return the mean label (Q,) of each question."""
    names, code = data.questions
    if code is None:
        return np.array([overall_mean(data)])
    question, weight = code[data.task], data.weights
    total = np.bincount(question, weight, len(names))
    center = overall_mean(data)
    sums = np.bincount(question, weight * (data.value - center), len(names))
    return np.asarray(center + sums / np.where(total > 0, total, 1.0))


def _by_question(values: Floats, code: Any) -> Any:
    """Return a value of each question (Q,) for each task; tasks without one have the first."""
    return values[0] if code is None else values[np.maximum(code, 0)]


def _placed(
    estimates: TaskEstimates, data: CrowdNumbers, pivot: Floats, params: NoiseParams, given: bool
) -> TaskEstimates:
    """Return estimates in the units of the labels.

    Tasks without labels have no question; without a prior they get mean and variance of all tasks.
    """
    code = data.questions[1]
    mean = estimates.mean + _by_question(pivot, code)
    if code is None:
        return estimates._replace(mean=mean)
    lost = (code < 0) & (not given)
    level = pivot + params.mean
    variance = np.where(lost, params.variance.mean() + level.var(), estimates.variance)
    return estimates._replace(mean=np.where(lost, level.mean(), mean), variance=variance)


def apart_finding(data: CrowdNumbers, apart: Apart, scale: str = "linear") -> Finding:
    """Say that values follow the majority, because some workers stand apart from it.

    On a log scale the distance is that of logarithms, and the reader is told the factor.
    """
    n, J, ids = len(apart.workers), apart.n_workers, data.workers[apart.workers]
    return Finding(
        APART, "low", float(abs(apart.distance)), tuple(ids.tolist()),
        f"{n} of {J} workers stand{'s' if n == 1 else ''} apart by "
        f"{distance_text(apart.distance, scale)}: {describe_ids(ids)}. {FOLLOW}; labels cannot say "
        "who is right.",
        "Give the known numbers of some tasks as gold.",
    )  # fmt: skip


def distance_text(distance: float, scale: str) -> str:
    """Return a distance for the reader; on a log scale it is a factor.

    Examples
    --------
    >>> distance_text(1.5, "linear"), distance_text(np.log(2), "log")
    ('1.5', 'a factor of 2')
    """
    return f"a factor of {np.exp(distance):.3g}" if scale == "log" else f"{distance:.3g}"


def packed_errors() -> Finding:
    """Say what intervals of a pack leave out."""
    return Finding(
        "pack-intervals", "info", 0.0, (),
        "Intervals of a pack are normal and leave out the error of each worker's bias: both need "
        "all labels in memory.",
        "Read the pack into memory for intervals with both.",
    )  # fmt: skip


def worker_mean(table: Floats, count: Floats) -> Floats:
    """Return the mean (J,) over questions of a table (J, Q), by labels."""
    total = count.sum(axis=1)
    sums = (table * count).sum(axis=1)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), 0.0)
