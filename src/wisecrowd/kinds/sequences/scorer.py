"""How methods for sequences are compared: against a truth, and by hidden labels without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Floats
from wisecrowd.inference.checking import Checking, Compared
from wisecrowd.inference.held_out import NOTHING_TO_HIDE, HeldOutScore, ScoringPlan, scoring_plan
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, MakeFit, ResultFile
from wisecrowd.kinds.classes.families.held_out_labels import score_hidden_labels
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.metrics import (
    EXACT,
    compare_spans,
    span_scores,
    span_table_scores,
)
from wisecrowd.kinds.sequences.tag_scheme import TagScheme


class SequenceScorer:
    """Scores of methods that take sequences of tags."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "span_f1", "span_precision", "span_recall", "relaxed_f1", "token_accuracy",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("precision_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of tags that were hidden from the fit, given by one "
        "common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected precision: mean confidence of the spans, which is what the labels say about "
        "themselves, not an estimate of accuracy",
    )

    def match(self, truth: Any, data: CrowdSequences) -> Any:
        """Return the true tags of tokens, -1 where unknown."""
        return None if truth is None else known_tags(truth, data)

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the scores of spans and tags."""
        scheme = TagScheme(model.scheme_, tuple(model.classes_.tolist()))
        pointer = np.append(0, np.cumsum(model.length_))
        return span_scores(scheme, truth, model.path_, pointer)

    def plan(self, data: CrowdSequences) -> ScoringPlan:
        """Return the sequences to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden tags, with their tasks as groups."""
        return held_out_tag_score(lambda visible: fit(visible).marginals_, plan)

    def claim(self, model: Any, data: CrowdSequences) -> dict[str, float]:
        """Return the mean confidence of the spans; 1 without any."""
        own = model.span_confidence_
        return {"precision_expected": float(np.mean(own)) if len(own) else 1.0}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the share of tokens with the same tag."""
        return float(np.mean(one.path_ == other.path_))


def held_out_tag_score(
    make_fit: Callable[[CrowdSequences], Any], plan: ScoringPlan
) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the tags that were hidden from it.

    Whole sequences of a worker are hidden. The workers of all methods have one common model, in
    which tags depend on the true tag only.

    Parameters
    ----------
    make_fit : function of CrowdSequences to (n_tokens, n_classes) probabilities
        Fits the method to the visible sequences, which keep all vocabularies and tokens.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no sequence can be hidden, because every task has one at most.
    """
    data: Any = plan.labels
    if plan.n_hidden == 0:
        raise DataError(NOTHING_TO_HIDE)
    tokens = data.to_labels()
    order = np.argsort(data.token, kind="stable")
    sequence = np.repeat(np.arange(data.n_annotations), np.diff(data.pointer))[order]
    folds, found = plan.folds[sequence], np.empty(len(sequence))
    for fold in range(plan.n_folds_used):
        hidden = folds == fold
        if hidden.any():
            probas = make_fit(data.select_annotations(plan.folds != fold))
            found[hidden] = score_hidden_labels(tokens, hidden, probas)
    scored = plan.scored[sequence]
    weight = None if tokens.weight is None else tokens.weight[scored]
    return HeldOutScore(found[scored], data.task[sequence[scored]], weight)


SPAN_COLUMNS = ("task", "start", "end", "label")  # of a file of spans
Span = tuple[Any, int, int, str]  # task, start, end, type


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of spans against true spans, or against the true tags of tokens."""
    given, true = spans_in(found), truth.content()
    if set(SPAN_COLUMNS) <= set(true.names):
        wanted = spans_in(true)
        known = set(true.column("task"))  # also texts without spans
    else:
        tasks, tags = truth.pairs(notes)
        wanted, known = spans_of_texts(tasks, tags), set(tasks)
    about = {task for task, *_ in given}
    scored = {span for span in given if span[0] in known}
    if not known:
        raise DataError(f"{truth.path} names no task; give one task and its tags per row.")
    if about and not about & known:
        raise DataError(f"{truth.path} names none of the tasks of {found.path}; compare the ids.")
    if rest := len(known - about):  # a file of spans does not name texts without any
        notes(
            f"{rest} tasks of {truth.path} have no span in {found.path}, which counts as no span "
            "found"
        )
    sizes = len(about & known), len(about)
    return Evaluation(span_table_scores(wanted, scored), *sizes, "tasks with spans")


def spans_of_texts(tasks: list[Any], texts: list[Any]) -> set[Span]:
    """Return the spans of the tags of tasks."""
    if not tasks:
        return set()
    data = CrowdSequences.from_arrays(tasks, ["truth"] * len(tasks), texts, duplicates="last")
    scheme = data.tag_scheme
    rows = zip(*(column.tolist() for column in scheme.spans(data.tags, data.pointer)), strict=True)
    named = data.tasks[data.task].tolist()
    return {(named[i], start, end, scheme.types[kind]) for i, start, end, kind in rows}


def spans_in(file: ResultFile) -> set[Span]:
    """Return the spans of a file; a row without a start is a text without spans."""
    if not set(SPAN_COLUMNS) <= set(file.names):
        raise file.refuse_columns("spans need task, start, end and label")

    def limit(value: Any, task: Any) -> int:
        number = file.number(value, task)
        if number != number or number < 0 or number % 1:
            raise DataError(
                f"{file.path} has a span of {task!r} at {value!r}; give a whole number."
            )
        return int(number)

    return {
        (task, limit(start, task), limit(end, task), str(label))
        for task, start, end, label in zip(*map(file.column, SPAN_COLUMNS), strict=True)
        if start not in (None, "")
    }


class SpanChecking(Checking):
    """F1 of spans: twice the right ones over all found and all of the person."""

    measure: ClassVar[str] = "span_f1"
    heading: ClassVar[str] = "F1 of the spans"

    def confidence(self, fit: Any, data: CrowdSequences) -> Floats:
        """Return the mean confidence of the tokens of each task."""
        return np.asarray(fit.token_confidence_, dtype=np.float64)

    def compare(self, fit: Any, data: CrowdSequences, answers: Mapping[Any, Any]) -> Compared:
        """Compare spans with those of the person's tags by task."""
        true, pointer = known_tags(answers, data, "check list"), data.token_pointer
        task = np.repeat(np.arange(data.n_tasks), np.diff(pointer))
        known = np.bincount(task, true >= 0, data.n_tasks) > 0
        rows = known[task]
        length = np.where(known, np.diff(pointer), 0)
        ends = np.append(0, np.cumsum(length))
        wanted = data.tag_scheme.spans(true[rows], ends)
        found = data.tag_scheme.spans(fit.path_[rows], ends)
        right = compare_spans(found, wanted, length) == EXACT
        top = (2 * np.bincount(found.sequence[right], minlength=data.n_tasks)).astype(np.float64)
        both = np.concatenate([found.sequence, wanted.sequence])
        bottom = np.bincount(both, minlength=data.n_tasks).astype(np.float64)
        return Compared(known, top, bottom, top < bottom)


SCORER = SequenceScorer
CHECKING = SpanChecking
