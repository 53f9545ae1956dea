"""Actions and trials: what a suggested command does, and what that would change on these data.

An action is carried out in memory: the labels are fitted before and after it. Where enough classes
are known, both fits, which have not seen them, are scored on these tasks: known answers outrank
models. Otherwise a fifth of the labels at a time is hidden from both fits, and one common model
scores the hidden labels of workers whom the action does not concern, because colluders predict each
other. Large crowds are sampled.
"""

from __future__ import annotations

import itertools
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.registry import get_method
from wisecrowd.core.types import Mask
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan
from wisecrowd.inference.label_support import (
    CLEAR,
    KnownScores,
    Support,
    known_score,
    label_support,
)
from wisecrowd.inference.scorers import scorer_of
from wisecrowd.kinds.classes.audit.drift import late_labels
from wisecrowd.reporting.study import codes_of

SPAMMERS = ("spammers", "voters")  # parts of an audit that name workers to prune
MOST_LABELS = 20_000  # above, tasks are sampled until they have about this many labels
HARMLESS = 0.005  # share of changed tasks that cannot lower the accuracy by more


@dataclass(frozen=True)
class Action:
    """Effect of a command on the data and on the method; nothing by default.

    Attributes
    ----------
    removes : tuple of str
        What is pruned: "clones", "collusion" or "spammers".
    unlabelled : str
        What happens to tasks that would lose all labels, as in `wisecrowd.audit.prune`.
    moments : mapping of worker to time
        Labels after these times are dropped.
    method : str, optional
        Method that is used instead of the reported one.
    parameters : mapping
        Its parameters.
    needs : str
        File that the user has to make first, such as "gold.csv"; the effect depends on it.
    calibrates : bool
        Whether the command changes the confidences only.
    """

    removes: tuple[str, ...] = ()
    unlabelled: str = "refuse"
    moments: Mapping[Any, Any] = field(default_factory=dict)
    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""
    calibrates: bool = False

    @property
    def changes_labels(self) -> bool:
        """Whether the labels of tasks may change."""
        return bool(self.removes or self.moments or self.method is not None)

    @classmethod
    def of(cls, template: str, moments: Mapping[Any, Any], method: str) -> Action:
        """Return the action of a command, given as in ``verdict.COMMANDS``.

        Examples
        --------
        >>> Action.of("audit {file} --prune-to cleaned.csv", {}, "auto").removes
        ('spammers',)
        >>> Action.of("aggregate {file} -m glad -o labels.csv", {}, "auto").method
        'glad'
        """
        words = shlex.split(template)
        pairs = list(itertools.pairwise(words))
        given = {name: [value for word, value in pairs if word == name]
                 for name in ("--prune", "-m", "-p", "--gold", "--unlabelled")}  # fmt: skip
        if "--prune-to" in words:
            return cls(
                removes=tuple(given["--prune"] or ["spammers"]),
                unlabelled=(given["--unlabelled"] or ["refuse"])[0],
            )
        if given["--gold"]:
            return cls(needs=given["--gold"][0])
        if "{drop}" in words:
            return cls(moments=moments)
        if words[0] != "aggregate":
            return cls()
        if "--calibrate" in words:
            return cls(calibrates=True)
        named = [method if one == "{method}" else one for one in given["-m"]]
        chosen = named[0] if named else method
        parameters = dict(_parameter(one) for one in given["-p"])
        if chosen == "{reported}":
            return cls()
        return cls(method=chosen, parameters=parameters)

    def unfitted(self, base: Any) -> Any:
        """Return the method to fit: that of the action, or a copy of the reported one."""
        if self.method is None:
            return base._for_refit()
        return get_method(self.method)(**self.parameters)


def _parameter(text: str) -> tuple[str, Any]:
    """Return a name and its value; true and numbers have their types."""
    name, _, value = text.partition("=")
    if value in ("true", "false"):
        return name, value == "true"
    return name, int(value) if value.isdecimal() else value


@dataclass(frozen=True, eq=False)
class Applied:
    """An action on some data: what it removes, and how it changes a selection of the rows.

    Attributes
    ----------
    workers : (n_workers,) bool
        Workers who are removed, or merged into another one.
    spared : (n_workers,) bool
        Accused workers who stay, because some tasks have no labels of others.
    rows : (n_annotations,) bool
        Annotations that are removed.
    clones : part of the audit with the groups to merge, or None
    """

    workers: Mask
    spared: Mask
    rows: Mask
    moments: Mapping[Any, Any]
    clones: Any = None

    def to(self, some: Any) -> Any:
        """Return some of the annotations as the action leaves them; all vocabularies stay."""
        from wisecrowd.kinds.classes.audit.clones import merged_clones

        if self.clones is not None:
            some = merged_clones(some, self.clones)[0]
        keep = ~self.workers[some.worker]
        if self.moments:
            keep &= ~late_labels(some, self.moments)
        return some if keep.all() else some.select_annotations(keep)


def apply(action: Action, data: Any, parts: Mapping[str, Any]) -> Applied | None:
    """Return what an action does to data, from the parts of their audit; None if unknown."""
    from wisecrowd.kinds.classes.audit.pruning import removable

    nobody = np.zeros(data.n_workers, dtype=bool)
    done = Applied(nobody, nobody, np.zeros(data.n_annotations, dtype=bool), action.moments)
    if action.moments:
        done = replace(done, rows=late_labels(data, action.moments))
    for what in action.removes:
        names = SPAMMERS if what == "spammers" else (what,)
        part = next((parts[name] for name in names if name in parts), None)
        if part is None:
            return None
        if what == "clones":
            merged = part.group >= 0
            first = np.unique(part.group[merged], return_index=True)[1]
            gone = merged.copy()
            gone[np.flatnonzero(merged)[first]] = False
            done = replace(done, clones=part, workers=done.workers | gone)
            continue
        accused = np.array(part.accused)
        if done.clones is not None:
            accused &= done.clones.group < 0  # merged copies are not accused again
        gone = accused
        if data.of_classes:  # other kinds drop tasks instead of sparing workers
            gone = removable(data, accused, action.unlabelled)
        done = replace(done, workers=done.workers | gone, spared=done.spared | (accused & ~gone))
    return replace(done, rows=done.rows | done.workers[data.worker])


@dataclass(frozen=True)
class Trial:
    """Effect of an action on the result.

    Attributes
    ----------
    n_changed, n_tasks : int
        Tasks whose label changes or is lost, of the tasks with labels; -1 if the kind has none.
    agreement : float
        Agreement of the results before and after, on the scale of the kind; at most 1.
    score_change, score_error : float
        Change of the held-out score and its standard error; NaN if no label can be held out.
    measured : tuple of (float, float), optional
        Accuracy before and after on tasks of known class.
    sampled : bool
        Whether a sample of the tasks was used.
    n_workers, n_labels : int
        Workers and labels that the action removes from all data.
    cost : float, optional
        Cost of the removed labels.
    spared : tuple of ids
        Accused workers who are not removed.
    support : Support, optional
        What hidden labels say about the changed labels; None for other kinds than classes.
    known : KnownScores, optional
        Scores on tasks of known class.
    """

    n_changed: int
    n_tasks: int
    agreement: float
    score_change: float
    score_error: float
    measured: tuple[float, float] | None = None
    sampled: bool = False
    n_workers: int = 0
    n_labels: int = 0
    cost: float | None = None
    spared: tuple[Any, ...] = ()
    support: Support | None = None
    known: KnownScores | None = None

    @property
    def decided(self) -> bool | None:
        """Whether known classes speak for the action; None if they do not decide."""
        if self.known is not None and self.known.decides:
            return self.known.better
        if self.measured is not None and self.measured[1] < self.measured[0]:
            return False
        return None

    @property
    def improves(self) -> bool:
        """Whether labels change for the better: the rule for the removal of spammers.

        A method that learns about workers gives spammers little weight. Without them it is more
        confident, which raises the held-out score, but its labels need not be better.
        """
        if self.n_changed == 0:
            return False
        if self.decided is not None:
            return self.decided
        if np.isnan(self.score_change):
            return False
        better = self.score_change > CLEAR * self.score_error
        return better and (self.support is None or self.support.clear)

    @property
    def holds(self) -> bool:
        """Whether to advise the action.

        Known classes decide, if there are enough. Otherwise held-out labels are predicted clearly
        better, or as well as before, within one standard error, while almost no label changes.
        """
        if self.decided is not None:
            return self.decided
        if np.isnan(self.score_change):
            return self.share_changed == 0
        if self.score_change > CLEAR * self.score_error:
            return True
        return self.share_changed <= HARMLESS and self.score_change >= -self.score_error

    @property
    def share_changed(self) -> float:
        """Share of tasks whose label changes; without labels, the lack of agreement."""
        if self.n_changed < 0:
            return 1 - self.agreement
        return self.n_changed / max(self.n_tasks, 1)


class Trials:
    """Tries actions on the data of a study; equal actions are tried once."""

    def __init__(self, study: Any) -> None:
        self.study = study
        self.fit = getattr(study, "blind", study.fit)
        self._done: dict[str, Trial | None] = {}
        self._codes_before: list[Any] = []  # labels of each fold's fit

    def of(self, action: Action, concerned: Mask | None = None) -> Trial | None:
        """Return the effect of an action; None if it cannot be tried.

        Parameters
        ----------
        action : Action
        concerned : (n_workers,) bool, optional
            Workers whose hidden labels are not scored, besides those whom the action removes.
        """
        key = f"{action}{None if concerned is None else np.flatnonzero(concerned).tolist()}"
        if key not in self._done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WisecrowdWarning)
                try:
                    self._done[key] = self._try(action, concerned)
                except WisecrowdError:
                    self._done[key] = None
        return self._done[key]

    # ------------------------------------------------------------------------------------- parts

    @cached_property
    def _tasks(self) -> NDArray[np.int64]:
        """Positions of the tasks that are used: all, or a sample."""
        labels = self.study.labels
        if labels.n_annotations <= MOST_LABELS:
            return np.arange(labels.n_tasks)
        order = np.random.default_rng(0).permutation(labels.n_tasks)
        so_far = np.cumsum(labels.labels_per_task[order])
        return np.sort(order[: 1 + int(np.searchsorted(so_far, MOST_LABELS))])

    @cached_property
    def data(self) -> Any:
        """The labels of these tasks."""
        labels = self.study.labels
        return labels if len(self._tasks) == labels.n_tasks else labels[self._tasks]

    @cached_property
    def _scorer(self) -> Any:
        return scorer_of(self.data)

    @cached_property
    def _plan(self) -> Any:
        return self._scorer.plan(self.data)

    @cached_property
    def _before(self) -> Any:
        """Fit to the labels as they are."""
        if self.data is self.study.labels:
            return self.fit
        return self.fit._for_refit()._fit_without_checks(self.data)

    @cached_property
    def _score_before(self) -> HeldOutScore:
        def fit(visible: Any) -> Any:
            return self._kept(self.fit._for_refit(), visible, self._codes_before)

        found: HeldOutScore = self._scorer.score_held_out(fit, self._plan)
        return found

    def _kept(self, method: Any, visible: Any, codes: list[Any]) -> Any:
        """Fit a method, and append the codes (n_tasks,) of its labels, -1 for tasks without."""
        fitted = method._fit_without_checks(visible)
        if visible.of_classes:
            codes.append(np.where(visible.labels_per_task > 0, codes_of(fitted, visible), -1))
        return fitted

    # ------------------------------------------------------------------------------------- trial

    def _try(self, action: Action, concerned: Mask | None) -> Trial | None:
        if not isinstance(self.fit, Aggregator):
            return None
        labels = self.study.labels
        applied = apply(action, labels, self.study.audit.parts)
        if applied is None:
            return None
        after = action.unfitted(self.fit)._fit_without_checks(applied.to(self.data))
        changed, n_tasks = self._changed(after, applied)
        agreement = float(self._scorer.agreement(self._before, after))
        score, error, support = self._held_out(action, applied, concerned, changed, agreement)
        known = self._known_scores(after)
        cost = labels.columns.get("cost")
        paid = None if cost is None else float(np.nansum(np.asarray(cost, float)[applied.rows]))
        return Trial(
            n_changed=changed, n_tasks=n_tasks, agreement=agreement,
            score_change=score, score_error=error,
            measured=None if known is None else (known.before.accuracy, known.after.accuracy),
            sampled=self.data is not labels,
            n_workers=int(applied.workers.sum()), n_labels=int(applied.rows.sum()), cost=paid,
            spared=tuple(labels.workers[applied.spared].tolist()), support=support,
            known=known,
        )  # fmt: skip

    def _changed(self, after: Any, applied: Applied) -> tuple[int, int]:
        """Return the number of tasks with another label or none, and of labelled tasks."""
        labelled = self.data.labels_per_task > 0
        if self.data.of_classes:
            first, second = (codes_of(one, self.data) for one in (self._before, after))
        elif hasattr(after, "labels_") and len(after.labels_) == self.data.n_tasks:
            first, second = self._before.labels_, after.labels_
        else:
            return -1, int(labelled.sum())
        lost = np.bincount(applied.to(self.data).task, minlength=self.data.n_tasks) == 0
        differs = np.array([a != b for a, b in zip(first, second, strict=True)], dtype=bool)
        return int(((differs | lost) & labelled).sum()), int(labelled.sum())

    def _held_out(
        self, action: Action, applied: Applied, concerned: Mask | None, changed: int, agree: float
    ) -> tuple[float, float, Support | None]:
        """Return the change of the held-out score, its standard error, and the support."""
        unknown = float("nan"), float("nan"), None
        if changed == 0 or (changed < 0 and agree >= 1):
            return 0.0, 0.0, None
        if not self._plan.n_hidden:
            return unknown
        before, codes = self._score_before, list[Any]()
        after = self._scorer.score_held_out(
            lambda visible: self._kept(action.unfitted(self.fit), applied.to(visible), codes),
            self._plan,
        )
        gone = applied.workers if concerned is None else applied.workers | concerned
        keep = self._scored(before, gone, applied)
        if keep.sum() < 2:
            return unknown
        weight = None if before.weight is None else before.weight[keep]
        difference = HeldOutScore(
            after.per_label[keep] - before.per_label[keep], before.task[keep], weight
        )
        error = float(np.nan_to_num(difference.standard_error, nan=np.inf))
        return float(difference.mean), error, self._support(codes, keep)

    def _support(self, codes: list[Any], keep: Mask) -> Support | None:
        """Return what the compared hidden labels say about the changed labels."""
        if not isinstance(self._plan, ScoringPlan) or not codes:
            return None
        return label_support(self._plan, self._codes_before, codes, keep)

    def _scored(self, score: HeldOutScore, gone: Mask, applied: Applied) -> Mask:
        """Return the hidden labels (n_hidden,) to compare: those of workers who stay."""
        everything = np.ones(len(score.per_label), dtype=bool)
        if not isinstance(self._plan, ScoringPlan):  # votes, grouped by worker
            return np.asarray(~gone[score.task])
        rows = np.flatnonzero(self._plan.scored)
        if len(rows) != len(everything):  # several values of each annotation
            return everything
        some = self._plan.labels
        keep = ~gone[some.worker]
        if applied.moments:
            from wisecrowd.kinds.classes.audit.drift import late_labels

            keep &= ~late_labels(some, applied.moments)
        return np.asarray(keep[rows])

    def _known_scores(self, after: Any) -> KnownScores | None:
        """Return the scores before and after on tasks of known class."""
        known = getattr(self.study, "known", None)
        if known is None or not self.data.of_classes:
            return None
        known = known[self._tasks]
        tasks = np.flatnonzero((known >= 0) & (self.data.labels_per_task > 0))
        if not len(tasks):
            return None
        return KnownScores(
            *(
                known_score(one.probas_[tasks], codes_of(one, self.data)[tasks], known[tasks])
                for one in (self._before, after)
            )
        )
