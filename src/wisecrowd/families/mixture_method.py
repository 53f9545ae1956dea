"""MixtureMethod: base of the methods that fit prototypes of sets and rates of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.set_answers import SetAnswers
from wisecrowd.families.label_rules import LabelRules
from wisecrowd.families.set_method import SetMethod, SetProblem, WorkerSets
from wisecrowd.families.set_mixture import SetMixture, SetParams


@dataclass(eq=False, repr=False, kw_only=True)
class MixtureMethod(SetMethod):
    """Base of the methods with prototypes; a method says how many there are."""

    shrinkage: float = 5.0
    max_iter: int = 200
    tol: float = 1e-4

    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True)
    footprint: ClassVar[Footprint | None] = Footprint(cell=120.0)
    saves: ClassVar[dict[str, Saved]] = {
        "sensitivity_": SavedArray("J K", "probability"),
        "false_alarm_": SavedArray("J K", "probability"),
        "pooled_sensitivity_": SavedArray("K", "probability"),
        "pooled_false_alarm_": SavedArray("K", "probability"),
        "prototypes_": SavedArray("* K", "probability"),
        "prototype_weights_": SavedArray("*", "distribution"),
    }

    def _saved_fault(self) -> str:
        same = len(self.prototypes_) == len(self.prototype_weights_) > 0
        return "" if same else "prototypes_ do not fit prototype_weights_"

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("shrinkage", self.shrinkage, 0.01, 1e6)

    def _rules(self, problem: SetProblem) -> LabelRules:
        return LabelRules.none(problem.data.n_classes)

    def _n_prototypes(self, model: SetMixture) -> int:
        return 1

    def _model(self, problem: SetProblem) -> SetMixture:
        rules, prior, data = self._rules(problem), problem.prior, problem.data
        if prior.known is not None and prior.members is not None:
            known = prior.known
            rules.require_allowed(prior.members[known], data.tasks[known], data.classes)
        return SetMixture(data, prior, rules, float(self.shrinkage))

    def _fit(self, problem: SetProblem) -> Fit:
        model = self._model(problem)
        model.rules.require_support(problem.data)
        run = model.run(self._n_prototypes(model), self.max_iter, self.tol)
        answers = self._answers(model.careful(run.params), model.rules)
        worth = WorkerSets.of(problem.data, run.probas)
        params = run.params
        order = np.argsort(-params.weights, kind="stable")
        return Fit(
            answers,
            worth.accuracy,
            worth.error,
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            extra={
                "sensitivity": params.rates[0],
                "false_alarm": params.rates[1],
                "pooled_sensitivity": params.pooled[0],
                "pooled_false_alarm": params.pooled[1],
                "prototypes": params.prototypes[order],
                "prototype_weights": params.weights[order],
                **worth.published(),
            },
        )

    def _fitted(self) -> SetParams:
        return SetParams(
            np.stack([self.sensitivity_, self.false_alarm_]),
            np.stack([self.pooled_sensitivity_, self.pooled_false_alarm_]),
            self.prototypes_,
            self.prototype_weights_,
        )

    def _predict(self, problem: SetProblem) -> SetAnswers:
        model = self._model(problem)
        return self._answers(model.careful(self._fitted()), model.rules)

    def _log_likelihood(self, problem: SetProblem) -> float:
        return self._model(problem).log_likelihood(self._fitted())
