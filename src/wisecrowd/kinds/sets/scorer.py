r"""How methods for sets are compared: against a truth, and by sets that were hidden.

A hidden set has the log-probability

.. math::
    \log p(Y_{ij}) = \sum_k \log\left(q_{ik}\, \hat s_{jk}^{y} (1 - \hat s_{jk})^{1-y}
    + (1 - q_{ik})\, \hat f_{jk}^{y} (1 - \hat f_{jk})^{1-y}\right), \qquad y = [k \in Y_{ij}]

The rates come from the visible sets under :math:`q`, in one common way for all methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.held_out import FLOOR, HeldOutScore, ScoringPlan, scoring_plan
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, MakeFit, ResultFile
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.base import Ticks, pooled_rates, shrunk_rates
from wisecrowd.kinds.sets.metrics import SET_SCORES, set_scores
from wisecrowd.kinds.sets.truth import KnownSets, known_sets

WORKER, POOLED = 10.0, 30.0  # pseudo-labels of the rates of a class, and of all classes
BLOCK = 1 << 20  # pairs of annotation and class at once


class SetScorer:
    """Scores of methods that take sets of classes."""

    with_truth: ClassVar[tuple[str, ...]] = (*SET_SCORES, "log_loss")
    claims: ClassVar[tuple[str, ...]] = ("hamming_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of sets that were hidden from the fit, given by one "
        "common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected Hamming loss: expected share of wrong decisions about single classes, the "
        "method's own claim, often too low",
    )

    def match(self, truth: Any, data: CrowdSets) -> KnownSets | None:
        """Return the true sets of tasks."""
        return None if truth is None else known_sets(truth, data)

    def score(self, model: Any, truth: KnownSets) -> dict[str, float]:
        """Return the scores of sets and probabilities."""
        return set_scores(truth, model.members_, model.probas_)

    def plan(self, data: CrowdSets) -> ScoringPlan:
        """Return the sets to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden sets, with their tasks as groups."""
        return held_out_set_score(lambda visible: fit(visible).probas_, plan)

    def claim(self, model: Any, data: CrowdSets) -> dict[str, float]:
        """Return the expected share of wrong decisions about single classes."""
        p = model.probas_[data.labels_per_task > 0]
        wrong = np.where(model.members_[data.labels_per_task > 0], 1 - p, p)
        return {"hamming_expected": float(np.mean(wrong))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the share of tasks with the same set."""
        return float(np.mean(one.labels_ == other.labels_))


def held_out_set_score(make_fit: Callable[[CrowdSets], Floats], plan: ScoringPlan) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the sets that were hidden from it.

    Parameters
    ----------
    make_fit : function of CrowdSets to (n_tasks, n_classes) probabilities
        Fits the method to the visible sets, which keep all vocabularies.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no set can be hidden, because every task has one at most.
    """
    data: CrowdSets = plan.labels

    def score(hidden: Mask) -> Floats:
        visible = data.select_annotations(~hidden)
        return score_hidden_sets(visible, data.select_annotations(hidden), make_fit(visible))

    return plan.scores(score)


def score_hidden_sets(visible: CrowdSets, hidden: CrowdSets, probas: Floats) -> Floats:
    """Return the log-probability of each hidden set, under probabilities of the classes."""
    counts = Ticks(visible).counts(probas)
    rates = shrunk_rates(counts, pooled_rates(counts, POOLED), WORKER)
    found = np.empty(hidden.n_annotations)
    size = max(1, BLOCK // hidden.n_classes)
    for first in range(0, hidden.n_annotations, size):
        rows = slice(first, first + size)
        task, worker = hidden.task[rows], hidden.worker[rows]
        q, own = probas[task], rates[:, worker]
        chance = q * own[0] + (1 - q) * own[1]
        begin, end = hidden.pointer[first], hidden.pointer[min(first + size, len(found))]
        row = hidden.annotation[begin:end] - first
        log = np.log((1 - FLOOR) * (1 - chance) + FLOOR / 2)
        ticked = chance[row, hidden.members[begin:end]]
        more = np.log((1 - FLOOR) * ticked + FLOOR / 2) - log[row, hidden.members[begin:end]]
        found[rows] = log.sum(axis=1) + np.bincount(row, more, len(task))
    return found


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of sets: task, labels, and the probability of every class as ``p_CLASS``."""
    column = next((one for one in ("labels", "label") if one in found.names), None)
    if column is None or "task" not in found.names:
        raise found.refuse_columns("sets need task and labels")
    named = [name.removeprefix("p_") for name in found.names if name.startswith("p_")]
    tasks = found.column("task")
    given = CrowdSets.from_arrays(
        tasks, ["answer"] * len(tasks), found.column(column), classes=named or None,
        duplicates="error",
    )  # fmt: skip
    known = known_sets(dict(zip(*truth.pairs(notes, CrowdSets.kind), strict=True)), given)
    probas = None
    if named:
        rows = np.array(
            [
                found.share(x, task)
                for name in named
                for x, task in zip(found.column(f"p_{name}"), tasks, strict=True)
            ]
        )
        place = {task: row for row, task in enumerate(tasks)}
        order = np.array([place[task] for task in given.tasks.tolist()])
        probas = rows.reshape(len(named), -1).T[order]
    scores = set_scores(known, given.votes > 0, probas)
    return Evaluation(scores, len(known.rows), len(tasks), "tasks")


def judge_hidden(data: CrowdSets, fit: Any, visible: Mask, hidden: Mask) -> Floats:
    """Return the log-probability of hidden sets under the common judge of a fit without them."""
    shown, rest = (data.select_annotations(some) for some in (visible, hidden))
    return score_hidden_sets(shown, rest, fit.probas_)


SCORER = SetScorer
