"""ChainMethod: base of the methods that fit hidden chains of tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.parameter_checks import check_flag
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.sequence_answers import SequenceAnswers
from wisecrowd.core.sequence_truth import SequencePrior
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.tag_scheme import TagScheme
from wisecrowd.families.span_ties import with_ties
from wisecrowd.families.tag_chains import (
    ChainCounts,
    Context,
    TagChains,
    WorkerSpans,
    require_few_tags,
)

Ints = NDArray[np.int64]
SequenceProblem = Problem[CrowdSequences, SequencePrior]


def known_of(problem: SequenceProblem) -> Ints:
    """Return the known tags of all tokens, -1 where unknown."""
    if problem.prior.gold is not None:
        return problem.prior.gold
    return np.full(int(problem.data.token_pointer[-1]), -1, dtype=np.int64)


@dataclass(eq=False, repr=False, kw_only=True)
class ChainMethod(Aggregator):
    """Base of the methods with hidden chains; a method says what a worker's tag depends on."""

    variational: bool = True
    max_iter: int = 60
    tol: float = 1e-3

    takes: ClassVar[str] = "sequences"
    # A repeated tag is judged by its twin, a heavy one only by other tags.
    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True, exact_replication=False)
    saves: ClassVar[dict[str, Saved]] = {
        "tag_counts_": SavedArray("workers contexts K K", "positive"),
        "start_counts_": SavedArray("K", "amount"),
        "step_counts_": SavedArray("K K", "amount"),
    }

    @staticmethod
    def _context(scheme: TagScheme) -> Context:
        raise TypeError("A method with chains must define _context.")

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        scheme = TagScheme(self.scheme_, tuple(self.classes_.tolist()))
        return {
            "workers": sizes["J"] + 1,  # the last row is that of an unknown worker
            "contexts": len(self._context(scheme).prior),
        }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_flag("variational", self.variational)

    def _chains(self, problem: SequenceProblem) -> TagChains:
        data = problem.data
        require_few_tags(data)
        context = self._context(data.tag_scheme)
        known, other = known_of(problem), problem.prior.evidence(data)
        return TagChains(data, known, context, self.variational, other)

    def _fit(self, problem: SequenceProblem) -> Fit:
        model = self._chains(problem)
        run = model.run(self.max_iter, self.tol)
        answers = model.answers(run.counts, run.posterior.marginals)
        answers = with_ties(answers, problem.data, problem.prior, problem.data.n_workers)
        worth = WorkerSpans.of(problem.data, answers)
        return Fit(
            answers,
            worth.accuracy,
            worth.error,
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            extra={**run.counts.published(model.context), **worth.published()},
        )

    def _fitted(self) -> ChainCounts:
        return ChainCounts(self.tag_counts_, self.start_counts_, self.step_counts_)

    def _predict(self, problem: SequenceProblem) -> SequenceAnswers:
        answers = self._chains(problem).answers(self._fitted())
        return with_ties(answers, problem.data, problem.prior, len(self.workers_))

    def _log_likelihood(self, problem: SequenceProblem) -> float:
        logs = self._fitted().logs(variational=self.variational)
        return self._chains(problem).posterior(logs).log_evidence
