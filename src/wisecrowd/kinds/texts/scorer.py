"""How methods for texts are compared: against a truth, and by texts that were hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.checking import Checking, Compared
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan, scoring_plan
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, MakeFit, ResultFile
from wisecrowd.kinds.texts.container import CrowdTexts, known_texts
from wisecrowd.kinds.texts.metrics import edit_counts, edit_distance, text_scores
from wisecrowd.kinds.texts.words import TextRules


class TextScorer:
    """Scores of methods that take texts."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "word_accuracy", "word_error_rate", "character_error_rate", "exact_texts",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("mean_confidence",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean share of words in which answers that were hidden from the fit agree "
        "with its text; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "mean agreement: agreement on the words, not an estimate of accuracy",
    )
    headings: ClassVar[dict[str, str]] = {"mean_confidence": "mean agreement"}

    def match(self, truth: Any, data: CrowdTexts) -> Any:
        """Return the true texts of tasks, None where unknown."""
        return None if truth is None else known_texts(truth, data)

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the error rates of the texts."""
        rows = np.array([one is not None for one in truth.tolist()])
        return text_scores(truth[rows], model.texts_[rows])

    def plan(self, data: CrowdTexts) -> ScoringPlan:
        """Return the texts to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the agreement with hidden texts, with their tasks as groups."""
        return held_out_text_score(lambda visible: fit(visible).texts_, plan)

    def claim(self, model: Any, data: CrowdTexts) -> dict[str, float]:
        """Return the mean agreement on the words."""
        labelled = data.labels_per_task > 0
        return {"mean_confidence": float(np.mean(model.confidence_[labelled]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the mean share of words that agree."""
        return 1 - edit_distance(one.texts_, other.texts_)


def held_out_text_score(
    make_fit: Callable[[CrowdTexts], NDArray[Any]], plan: ScoringPlan
) -> HeldOutScore:
    """Fit a method without each fold of a plan and compare its texts with the hidden answers.

    The score of a hidden answer is 1 less its edits to the text of the fit, over the words of the
    longer of both. Case and punctuation do not count, for all methods alike.

    Parameters
    ----------
    make_fit : function of CrowdTexts to (n_tasks,) texts
        Fits the method to the visible answers, which keep all vocabularies.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no answer can be hidden, because every task has one at most.
    """
    data: Any = plan.labels

    def score(hidden: Mask) -> Floats:
        given = make_fit(data.select_annotations(~hidden))[data.task[hidden]]
        edits, *lengths = edit_counts(data.text[hidden], given, TextRules())
        return np.asarray(1 - edits / np.maximum(np.maximum(*lengths), 1))

    return plan.scores(
        score, "Held-out scores need tasks with two answers or more, and there are none; collect a "
        "second answer for some tasks.",
    )  # fmt: skip


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of texts, task, text and confidence; the mean confidence is of the same tasks.

    In the truth, a task and its text in each row, a row with an empty text counts.
    """
    given = texts_of_tasks(found)
    true = truth.content() if truth.columns is None else None
    if true is not None and {"task", "text"} <= set(true.names):
        known = {task: text for task, (text, _) in texts_of_tasks(true).items()}
    else:
        known = dict(zip(*truth.pairs(notes), strict=True))
    tasks = [task for task in given if task in known]
    if not tasks:
        raise DataError(
            f"The truth names none of the {len(given)} tasks in {found.path}; it needs the same "
            "ids."
        )
    scores = text_scores([known[task] for task in tasks], [given[task][0] for task in tasks])
    sure = [given[task][1] for task in tasks]
    if all(one == one for one in sure):
        scores["mean_confidence"] = float(np.mean(sure))
    return Evaluation(scores, len(tasks), len(given), "tasks", TextScorer.headings)


def texts_of_tasks(file: ResultFile) -> dict[Any, tuple[str, float]]:
    """Return the text of every task, and its confidence, NaN without any."""
    if not {"task", "text"} <= set(file.names):
        raise file.refuse_columns("texts need task and text")
    tasks, texts = file.column("task"), file.column("text")
    sure = file.column("confidence") if "confidence" in file.names else [None] * len(tasks)
    found: dict[Any, tuple[str, float]] = {}
    for task, text, one in zip(tasks, texts, sure, strict=True):
        if task in found:
            raise DataError(f"Task {task!r} is in {file.path} twice; keep one row.")
        found[task] = ("" if text is None else str(text), file.share(one, task))
    return found


class TextChecking(Checking):
    """Word error rate: edits over the words of the person's texts."""

    measure: ClassVar[str] = "word_error_rate"
    heading: ClassVar[str] = "word error rate"
    best: ClassVar[float] = 0.0
    columns: ClassVar[tuple[str, ...]] = ("text",)
    empty_counts: ClassVar[bool] = True

    def compare(self, fit: Any, data: CrowdTexts, answers: Mapping[Any, Any]) -> Compared:
        """Compare texts with those of the person by task."""
        true = known_texts(answers, data)
        known = np.array([one is not None for one in true.tolist()])
        edits, words = np.zeros(data.n_tasks), np.zeros(data.n_tasks)
        edits[known], words[known], _ = edit_counts(true[known], fit.texts_[known], TextRules())
        return Compared(known, edits, words, edits > 0)


SCORER = TextScorer
CHECKING = TextChecking
