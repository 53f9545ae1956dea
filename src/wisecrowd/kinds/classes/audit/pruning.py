"""Removal of workers from a crowd, and the resulting changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.crowd_audit import plan_of
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.part import Table
from wisecrowd.core.types import Mask
from wisecrowd.inference.label_support import (
    CLEAR,
    KnownScores,
    Support,
    known_score,
    label_support,
)
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold

KINDS = ("clones", "collusion", "spammers")  # what `clean` removes, in this order
FEWEST = 2  # minimum number of remaining workers: a single one cannot be compared


@dataclass(frozen=True, eq=False)
class Pruned:
    """A crowd without some of its workers.

    Attributes
    ----------
    labels : CrowdLabels, or annotations of another kind
        Labels without the removed workers, and without tasks that only these labelled.
    removed, spared : worker ids
        Workers removed, and workers kept because a task would have lost all its labels.
    changes : table with one row per task of the original crowd
        ``task``, ``n_before``, ``n_after``, and the labels ``vote_before``, ``vote_after``,
        ``fit_before``, ``fit_after`` by majority vote and Dawid-Skene; None without labels.
    """

    labels: Any
    removed: NDArray[Any]
    spared: NDArray[Any]
    changes: Table

    def summary(self) -> dict[str, int]:
        """Return the counts of changes."""
        after = self.changes["n_after"] > 0
        return {
            "workers_removed": len(self.removed),
            "workers_spared": len(self.spared),
            "labels_removed": int((self.changes["n_before"] - self.changes["n_after"]).sum()),
            "tasks_kept": int(after.sum()),
            "tasks_lost": int((~after & (self.changes["n_before"] > 0)).sum()),
            "votes_changed": int((after & _differ(self.changes, "vote")).sum()),
            "fits_changed": int((after & _differ(self.changes, "fit")).sum()),
        }

    def __str__(self) -> str:
        facts = self.summary()
        spared = f" ({spared_sentence(self.spared)})" if len(self.spared) else ""
        lost = f", {facts['tasks_lost']} tasks lost" if facts["tasks_lost"] else ""
        return (
            f"pruned {facts['workers_removed']} workers{spared} and {facts['labels_removed']} "
            f"labels{lost}; of {facts['tasks_kept']} tasks {facts['votes_changed']} change their "
            f"majority vote and {facts['fits_changed']} their Dawid-Skene label"
        )


def spared_sentence(spared: NDArray[Any]) -> str:
    """Return whom pruning spares, and why.

    Examples
    --------
    >>> spared_sentence(np.array(["w3"]))
    "'w3' is spared, because some tasks have no labels of other workers"
    """
    verb = "is" if len(spared) == 1 else "are"
    why = "because some tasks have no labels of other workers"
    return f"{describe_ids(spared)} {verb} spared, {why}"


def prune(
    labels: Any, workers: Any = None, *, unlabelled: str = "refuse", random_state: Any = 0
) -> Pruned:
    """Remove workers from a crowd, by default its spammers.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers, CrowdPairs, or data of any form accepted for classes
    workers : worker ids or (n_workers,) mask, optional
        Workers to remove; by default those whom :func:`~wisecrowd.audit.find_spammers` accuses, or
        the part of the audit with the spammers of another kind.
    unlabelled : "refuse", "spare" or "drop"
        What to do if tasks would lose all their labels: raise an error; keep the busiest of their
        workers, as few as necessary; or drop the tasks.
    random_state : int, Generator or None
        Random state of searches that draw; that for spammers does not.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1]])
    >>> pruned = prune(labels, workers=[2])
    >>> pruned.labels, pruned.summary()["tasks_kept"]
    (CrowdLabels(4 tasks, 2 workers, 2 classes, 8 annotations), 4)
    """
    check_choice("unlabelled", unlabelled, ("refuse", "spare", "drop"))
    if is_other_kind(labels):
        from wisecrowd.audit.answer_pruning import prune_answers

        chosen = None if workers is None else mask_of(workers, labels)
        return prune_answers(labels, chosen, unlabelled)
    crowd = as_crowd_labels(labels)
    wanted = _as_mask(workers, crowd)
    removed = removable(crowd, wanted, unlabelled)
    rest = without_workers(crowd, removed)
    return Pruned(
        rest,
        crowd.workers[removed],
        crowd.workers[wanted & ~removed],
        changes_between(crowd, rest),
    )


def removable(crowd: CrowdLabels, wanted: Mask, unlabelled: str) -> Mask:
    """Return the workers (n_workers,) to remove, of those wanted; ``unlabelled`` as in `prune`."""
    lost = _left_without(crowd, wanted)
    removed = wanted
    if lost.any() and unlabelled == "refuse":
        raise DataError(
            f"Without {int(wanted.sum())} workers {int(lost.sum())} tasks "
            f"({describe_ids(crowd.tasks[lost])}) would have no labels; spare the workers who "
            "labelled them, or drop the tasks."
        )
    if lost.any() and unlabelled == "spare":
        removed = wanted & ~_to_spare(crowd, wanted, lost)
    remaining = int(((crowd.labels_per_worker > 0) & ~removed).sum())
    if removed.any() and remaining < FEWEST:
        raise DataError(
            f"Only {remaining} of {crowd.n_workers} workers would remain; name fewer to remove."
        )
    return removed


def clean(
    labels: Any, kinds: Iterable[str], *, unlabelled: str = "refuse", random_state: Any = 0
) -> Pruned:
    """Merge copies and remove colluders and spammers, as requested.

    Each step uses the result of the previous one. Copies come first, because next to them honest
    workers look like colluders and experts look like copies.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers, CrowdPairs, or data of any form accepted for classes
    kinds : of "clones", "collusion" and "spammers"
        Numbers and pairs have spammers only.
    unlabelled, random_state
        See :func:`prune`.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     300, 9 * simulate.OneCoinWorkers(8, 3) + 3 * simulate.Copiers(sources=0),
    ...     simulate.Dense(),
    ... )
    >>> clean(crowd.labels, ["clones"]).removed
    array([ 9, 10, 11])
    """
    from wisecrowd.kinds.classes.audit.clones import collapse_clones
    from wisecrowd.kinds.classes.audit.collusion import find_collusion

    asked = tuple(kinds)
    for kind in asked:
        check_choice("kinds", kind, KINDS)
    if is_other_kind(labels):
        require_prunable(labels, asked)
        return prune(labels, unlabelled=unlabelled)
    crowd = rest = as_crowd_labels(labels)
    spared = crowd.workers[:0]
    for kind in (kind for kind in KINDS if kind in asked):
        if kind == "clones":
            rest = collapse_clones(rest).labels
            continue
        accused = find_collusion(rest).accused if kind == "collusion" else None
        pruned = prune(rest, accused, unlabelled=unlabelled, random_state=random_state)
        rest, spared = pruned.labels, np.append(spared, pruned.spared)
    removed = crowd.workers[lookup(crowd.workers, rest.workers) < 0]
    return Pruned(rest, removed, spared, changes_between(crowd, rest))


def is_other_kind(data: Any) -> bool:
    """Return whether data are annotations, but not of classes."""
    return isinstance(data, Annotations) and not isinstance(data, CrowdLabels)


def require_prunable(data: Annotations, what: Iterable[str], name: str = "kinds") -> None:
    """Raise a ParameterError for what cannot be removed from data of this kind."""
    plan, kind = plan_of(data), kind_of(data).name
    for one in what:
        if not plan.prunable:
            raise ParameterError(
                f"Workers are not removed from {kind} by an audit; leave them out with "
                + for_reader("exclude_workers.", "--exclude-workers.")
            )
        if one not in plan.prunable:
            raise ParameterError(
                f"{name} is {one!r}, which is for classes; from {kind} only "
                f"{' and '.join(plan.prunable)} can be removed."
            )


def _as_mask(workers: Any, labels: CrowdLabels) -> Mask:
    if workers is None and labels.ordered:
        from wisecrowd.kinds.ordered.audit import find_ordered_spammers

        return find_ordered_spammers(labels, pruning=False).accused
    if workers is None:
        from wisecrowd.kinds.classes.audit.spammers import find_spammers

        return find_spammers(labels, pruning=False).accused
    return mask_of(workers, labels)


def mask_of(workers: Any, labels: Annotations) -> Mask:
    """Return worker ids, or a mask, as a mask (n_workers,)."""
    given = np.asarray(workers)
    if given.dtype == bool and labels.workers.dtype != bool:
        if given.shape != (labels.n_workers,):
            raise ParameterError(
                f"The mask of workers has shape {given.shape}; give one entry for each of the "
                f"{labels.n_workers} workers."
            )
        return given
    codes = lookup(list(workers), labels.workers)
    if (codes < 0).any():
        unknown = list(workers)[int(np.argmax(codes < 0))]
        raise ParameterError(
            f"There is no worker {unknown!r} to remove{suggestion(unknown, labels.workers)}."
        )
    mask = np.zeros(labels.n_workers, dtype=bool)
    mask[codes] = True
    return mask


def _left_without(labels: CrowdLabels, removed: Mask) -> Mask:
    """Return the mask (n_tasks,) of tasks with labels by removed workers only."""
    kept = np.bincount(labels.task[~removed[labels.worker]], minlength=labels.n_tasks)
    return np.asarray((labels.labels_per_task > 0) & (kept == 0))


def _to_spare(labels: CrowdLabels, removed: Mask, lost: Mask) -> Mask:
    """Return the mask (n_workers,) of the busiest worker of each task that would be lost."""
    rows = np.flatnonzero(lost[labels.task])
    busy = labels.labels_per_worker[labels.worker[rows]]
    order = rows[np.lexsort((labels.worker[rows], -busy, labels.task[rows]))]
    first = np.unique(labels.task[order], return_index=True)[1]
    spared = np.zeros(labels.n_workers, dtype=bool)
    spared[labels.worker[order[first]]] = True
    return spared & removed


def without_workers(labels: CrowdLabels, removed: Mask) -> CrowdLabels:
    """Drop workers from labels and vocabulary, and tasks without remaining labels."""
    lost = _left_without(labels, removed)
    rest = labels.select_workers(np.flatnonzero(~removed))
    return rest[~lost] if lost.any() else rest


def changes_between(before: CrowdLabels, after: CrowdLabels) -> dict[str, NDArray[Any]]:
    """Return the table ``changes`` of :class:`Pruned`."""
    from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
    from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote

    place = lookup(after.tasks, before.tasks)
    n_after = np.zeros(before.n_tasks, dtype=np.int64)
    n_after[place] = after.labels_per_task
    table: dict[str, NDArray[Any]] = {
        "task": before.tasks,
        "n_before": before.labels_per_task,
        "n_after": n_after,
    }
    for name, method in (("vote", MajorityVote), ("fit", DawidSkene)):
        found = np.full(before.n_tasks, None, dtype=object)
        table[f"{name}_before"] = method()._fit_without_checks(before).labels_
        found[place] = method()._fit_without_checks(after).labels_
        table[f"{name}_after"] = found
    return table


@dataclass(frozen=True)
class PruningEffect:
    """Effect of removing workers on a Dawid-Skene fit, measured on these data without truth.

    Attributes
    ----------
    n_changed, n_tasks : int
        Tasks whose label changes, of those that keep a label.
    score_change, score_error : float
        Change of the mean log-probability of held-out labels, and its standard error; NaN if no
        label can be held out.
    support : Support, optional
        What held-out labels say about the labels that change.
    known : KnownScores, optional
        Scores on tasks of known class. Enough of them decide instead of held-out labels.
    """

    n_changed: int
    n_tasks: int
    score_change: float
    score_error: float
    support: Support | None = None
    known: KnownScores | None = None

    @property
    def helps(self) -> bool:
        """Whether labels change and known classes, or else held-out labels, are predicted better.

        Held-out labels must support the new labels, too.
        """
        if self.known is not None and self.known.decides:
            return self.n_changed > 0 and self.known.better
        better = self.n_changed > 0 and self.score_change > CLEAR * self.score_error
        return better and (self.support is None or self.support.clear)

    def __str__(self) -> str:
        changed = f"pruning them changes {self.n_changed} of {self.n_tasks} labels"
        if self.known is not None and self.known.decides:
            return f"{changed}, and the log loss on {self.known}"
        if np.isnan(self.score_change):
            return changed
        said = (
            f"{changed}, and the log-probability of a held-out label by {self.score_change:+.4f} ± "
            f"{self.score_error:.4f}"
        )
        return said if self.support is None else f"{said}; {self.support}"


def effect_of_pruning(labels: CrowdLabels, removed: Mask, gold: Any = None) -> PruningEffect:
    """Return what the removal of workers (n_workers,) changes for Dawid-Skene.

    Known classes ``gold`` score both fits, which do not see them.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.crowd(300, 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers())
    >>> effect = effect_of_pruning(made.labels, np.arange(10) >= 8)
    >>> effect.n_changed < 10, effect.n_tasks
    (True, 300)
    """
    from wisecrowd.inference.held_out import paired_difference, scoring_plan
    from wisecrowd.kinds.classes.families.held_out_labels import held_out_score
    from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene

    codes: dict[str, list[Any]] = {"all": [], "rest": []}

    def fit(visible: CrowdLabels, who: str) -> Any:
        if who == "rest":
            visible = visible.select_annotations(~removed[visible.worker])
        probas = DawidSkene()._fit_without_checks(visible).probas_
        codes[who].append(np.where(visible.labels_per_task > 0, probas.argmax(axis=1), -1))
        return probas

    def fit_all(visible: CrowdLabels) -> Any:
        return fit(visible, "all")

    def fit_rest(visible: CrowdLabels) -> Any:
        return fit(visible, "rest")

    probas = fit_all(labels), fit_rest(labels)
    (before,), (after,) = codes.values()
    kept = after >= 0
    known = _known_scores(probas, (before, after), kept, as_gold(gold, labels))
    n_changed = int((before != after)[kept].sum())
    plan, support = scoring_plan(labels), None
    change, error = float("nan"), float("nan")
    if plan.n_hidden and n_changed:
        rest, everything = held_out_score(fit_rest, plan), held_out_score(fit_all, plan)
        change, error = paired_difference(rest, everything)
        stays = ~removed[plan.labels.worker[plan.scored]]
        support = label_support(plan, codes["all"][1:], codes["rest"][1:], stays)
    return PruningEffect(n_changed, int(kept.sum()), change, error, support, known)


def _known_scores(probas: Any, codes: Any, kept: Mask, gold: Any) -> KnownScores | None:
    """Return the scores before and after on tasks of known class that keep a label."""
    tasks = np.flatnonzero(kept & (gold >= 0)) if gold is not None else np.empty(0, dtype=int)
    if not len(tasks):
        return None
    return KnownScores(
        *(known_score(p[tasks], c[tasks], gold[tasks]) for p, c in zip(probas, codes, strict=True))
    )


def _differ(changes: Mapping[str, NDArray[Any]], name: str) -> Mask:
    before, after = changes[f"{name}_before"], changes[f"{name}_after"]
    return np.array([a != b for a, b in zip(before, after, strict=True)], dtype=bool)
