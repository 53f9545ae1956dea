"""Parts that all methods for ordered classes share: the decision rule and the findings."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.checks.data_checks import data_findings, subsample_step, subsample_tasks
from wisecrowd.checks.fit_checks import not_converged
from wisecrowd.checks.little_evidence import little_evidence
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.findings import Finding
from wisecrowd.core.ordered_answers import DECISIONS, OrderedAnswers, decided
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit, confidence_of


@dataclass(eq=False, repr=False, kw_only=True)
class OrderedMethod(Aggregator):
    """Base of methods for ordered classes, with the parameter ``decide``."""

    decide: str = "median"

    takes: ClassVar[str] = "ordered"

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_choice("decide", self.decide, DECISIONS)

    def _answers(self, probas: Any) -> OrderedAnswers:
        """Return a posterior as answers, decided by the method's rule."""
        return OrderedAnswers(probas, self.decide)

    def _findings(self, problem: Problem, result: Fit, gold: Any) -> list[Finding]:
        """Return findings on the data, on too little evidence and on convergence.

        Checks against the majority vote do not apply: the median of ordered classes may rightly
        be a class that few workers chose.
        """
        labels = problem.data
        some, step = subsample_tasks(labels), subsample_step(labels)
        found = list(data_findings(labels, some))
        if gold is not None and (gold >= 0).any():
            some = some.select_annotations((gold < 0)[::step][some.task])
        if some.n_annotations > 0 and not problem.prior.given:
            probas = result.probas[::step]
            codes, _ = decided(probas, labels.class_totals, self.decide)
            confidence = confidence_of(probas, codes)
            found += little_evidence(some, codes, confidence, labels.labels_per_worker)
        if not result.converged and self._wants_convergence():
            found.append(not_converged(result.n_iter, type(self).__name__))
        return found

    def _wants_convergence(self) -> bool:
        """Return whether ``max_iter`` is at its default or above; lower means stopping early."""
        usual = inspect.signature(type(self).__init__).parameters.get("max_iter")
        limit = getattr(self, "max_iter", None)
        return usual is None or limit is None or bool(np.greater_equal(limit, usual.default))
