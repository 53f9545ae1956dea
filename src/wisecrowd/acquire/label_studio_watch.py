"""A campaign in step with a Label Studio project: answers in by the API, the order out.

Label Studio hands out tasks that have a prediction of the project's current version, lowest score
first, as long as they have fewer annotations than their overlap. A query is therefore a prediction
without a result, and one place more than the task has annotations. Everything else stays closed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_api import LabelStudioClient, LabelStudioError, UnreachableError
from wisecrowd.acquire.label_studio_mirror import (
    AnnotationMirror,
    Link,
    Told,
    epoch_of,
    find_control,
)
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.platforms.values import as_text

PREFIX = "wisecrowd-"
# The order holds only if the project's maximum is 1: above it, Label Studio prefers tasks that are
# begun. More answers of a task come from its own overlap.
SETTINGS = {
    "sampling": "Uncertainty sampling",
    "maximum_annotations": 1,
    "show_overlap_first": False,
    "show_collab_predictions": False,
}
FULL_EVERY = 20  # cycles between snapshots of all tasks
MARGIN = 30.0  # seconds that a snapshot of the latest changes looks further back


@dataclass
class TaskState:
    """A task as Label Studio has it.

    Attributes
    ----------
    name : str
        Its id in the campaign.
    overlap : int
        Annotations after which it is closed.
    annotations, skips : int
    is_labeled : bool
        Whether it is closed.
    """

    name: str
    overlap: int
    annotations: int
    skips: int
    is_labeled: bool

    @classmethod
    def of(cls, name: str, task: dict[str, Any]) -> TaskState:
        """Return the state of a task."""
        names = ("overlap", "total_annotations", "cancelled_annotations")
        overlap, annotations, skips = (int(task.get(key) or 0) for key in names)
        return cls(name, max(overlap, 1), annotations, skips, bool(task.get("is_labeled")))

    def is_open(self) -> bool:
        """Return whether it would be handed out."""
        return not self.is_labeled and self.annotations < self.overlap


class Pushed(NamedTuple):
    """An order that Label Studio has.

    ``version`` is the name of its predictions, ``is_new`` tells whether it was another one before,
    and ``replaced`` holds the previous values of the project's settings that were changed.
    """

    version: str
    tasks: list[int]
    is_new: bool
    replaced: dict[str, Any]


def rank_tasks(campaign: Campaign, n: int) -> list[Any]:
    """Return up to ``n`` distinct tasks, the first to ask about first.

    Queries for the known workers come first, because a task that all of them have answered cannot
    be handed out. Queries for anybody follow: a new worker may join. Nothing is leased, because
    Label Studio has locks of its own.
    """
    labels = campaign.labels
    known = labels.workers[labels.labels_per_worker > 0].tolist()
    order: dict[Any, None] = {}
    for workers in (known, None) if known else (None,):
        order |= dict.fromkeys(query.task for query in campaign.preview(n, workers))
    if campaign.rules.budget is not None:
        n = min(n, int(campaign.rules.budget - campaign.stop_report().cost + 1e-9))
    return list(order)[: max(n, 0)]


def fix_settings(client: LabelStudioClient, project: int) -> dict[str, Any]:
    """Give a project the settings under which our order holds; return the previous values."""
    found = client.project(project)
    previous = {name: found.get(name) for name, value in SETTINGS.items()
                if found.get(name) != value}  # fmt: skip
    if previous:
        client.change_project(project, **{name: SETTINGS[name] for name in previous})
    return previous


def push_order(
    client: LabelStudioClient, project: int, order: list[int], states: dict[int, TaskState]
) -> Pushed:
    """Make an order that of a project. A push that was cut off is completed by the next one.

    Parameters
    ----------
    client : LabelStudioClient
    project : int
    order : list of int
        Numbers of distinct tasks, the first to ask about first.
    states : dict of number to TaskState
        All tasks of the project. Changed as the tasks are.
    """
    previous = fix_settings(client, project)
    wanted = {task: states[task].annotations + 1 for task in order}
    version = _version(wanted)
    current = client.project(project).get("model_version")
    versions = client.prediction_versions(project)
    if current != version:
        if version in versions:  # of a push that was cut off
            client.remove_predictions(project, version)
        rows = [
            {"task": task, "result": [], "score": rank / len(order), "model_version": version}
            for rank, task in enumerate(order)
        ]
        if rows:
            client.add_predictions(project, rows)
    for task, overlap in wanted.items():
        _change(client, task, states[task], overlap)
    if order and current != version:
        client.change_project(project, model_version=version)
    for task, state in states.items():
        if task not in wanted and state.is_open() and state.annotations:
            _change(client, task, state, state.annotations)
    for old in versions:
        if old.startswith(PREFIX) and old != version:
            client.remove_predictions(project, old)
    return Pushed(version, order, current != version, previous)


def _change(client: LabelStudioClient, task: int, state: TaskState, overlap: int) -> None:
    """Open a task up to a number of annotations, or close it at the number that it has."""
    is_labeled = overlap <= state.annotations
    if (state.overlap, state.is_labeled) != (overlap, is_labeled):
        client.change_task(task, overlap=overlap, is_labeled=is_labeled)
        state.overlap, state.is_labeled = overlap, is_labeled


def _version(wanted: dict[int, int]) -> str:
    """Return the name of an order: the same order of the same places has the same name."""
    text = ",".join(f"{task}:{overlap}" for task, overlap in wanted.items())
    return PREFIX + hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Cycle:
    """What one cycle has done.

    Attributes
    ----------
    told : Told
        Answers that are new, withdrawn or refused.
    n_answers : int
        Labels of the campaign.
    pushed : Pushed or None
        The order, if it was sent.
    n_open : int
        Places in the order that are still free.
    stop : str or None
        Why the campaign should stop.
    n_left_out : int
        Tasks of the project that are not in the campaign.
    """

    told: Told
    n_answers: int
    pushed: Pushed | None
    n_open: int
    stop: str | None
    n_left_out: int = 0


def linked(
    client: LabelStudioClient, project: int, control: str | None, task_key: str | None
) -> Link:
    """Return the link to a project, after a look at its labelling interface."""
    return Link(client.url, project, find_control(client.project(project), control), task_key)


def task_names(client: LabelStudioClient, link: Link) -> list[str]:
    """Return the ids of a project's tasks; one that has none is an error."""
    names: list[str] = []
    for page in client.tasks(link.project):
        for task in page:
            name = link.name_of(task)
            if name is None:
                raise DataError(
                    f"Task {task.get('id')} of project {link.project} has no {link.task_key!r} in "
                    "its data; name a key that all tasks have."
                )
            names.append(name)
    if not names:
        raise DataError(f"Project {link.project} has no tasks; import some first.")
    return names


class Watcher:
    """Cycles of a campaign: read what changed, and send the order when it has changed.

    Parameters
    ----------
    client : LabelStudioClient
    campaign : Campaign
    link : Link
    n : int
        Queries that Label Studio gets at a time.
    """

    def __init__(self, client: LabelStudioClient, campaign: Campaign, link: Link, n: int) -> None:
        self._client, self._campaign, self._link, self._n = client, campaign, link, n
        self._mirror = AnnotationMirror(campaign, link)
        self._states: dict[int, TaskState] = {}
        self._latest = 0.0  # time of the last change that was read
        self._n_cycles = 0
        self._order: list[int] = []
        self._sent: tuple[Any, ...] | None = None  # what the order was made from

    def cycle(self, push: bool = True) -> Cycle:
        """Read, and send the order if the fit is a new one or half of the order is answered."""
        told = self.read()
        stop = self._campaign.stop_report().reason
        pushed = None
        if push and self._is_due(stop):
            try:
                pushed = self._push(stop)
            except UnreachableError:
                raise
            except LabelStudioError:  # a task was deleted a moment ago
                told = told.plus(self.read(full=True))
                pushed = self._push(stop)
        n_labels, n_left_out = self._campaign.labels.n_annotations, len(self._mirror.left_out)
        return Cycle(told, n_labels, pushed, self._n_open(), stop, n_left_out)

    # ------------------------------------------------------------------------------------- in

    def read(self, full: bool = False) -> Told:
        """Bring the campaign up to date: tasks that changed, and from time to time all."""
        n_tasks = self._client.project(self._link.project).get("task_number")
        full = full or self._n_cycles % FULL_EVERY == 0 or n_tasks != len(self._states)
        told, seen = Told(), set()
        for page, mark in self._pages(full):
            told = told.plus(self._mirror.take_snapshot(page, mark))
            for task in page:
                name = self._link.name_of(task)
                if name is not None:
                    self._states[int(task["id"])] = TaskState.of(name, task)
                seen.add(int(task["id"]))
        if full:
            told = told.plus(self._forget({*self._states, *self._mirror.annotated_tasks()} - seen))
        self._n_cycles += 1
        return told

    def _pages(self, full: bool) -> Iterator[tuple[list[dict[str, Any]], int]]:
        """Yield pages of tasks, each with the mark from before it was requested.

        All tasks are one page, because the campaign wants their answers in the order of time.
        """
        since, latest = self._latest - MARGIN, self._latest
        pages = self._client.tasks(self._link.project, newest_first=not full)
        if full:
            mark = self._mirror.mark()
            everything = [task for page in pages for task in page]
            yield everything, mark
            times = [epoch_of(task.get("updated_at")) for task in everything]
            self._latest = max([latest, *times])
            return
        while True:
            mark = self._mirror.mark()
            page = next(pages, None)
            if page is None:
                break
            times = [epoch_of(task.get("updated_at")) for task in page]
            latest = max(latest, *times)
            yield page, mark
            if min(times) < since:
                break
        self._latest = latest

    def _forget(self, missing: set[int]) -> Told:
        """Drop tasks that were deleted; a page may have missed one that was not."""
        gone = [task for task in sorted(missing) if not self._client.has_task(task)]
        for task in gone:
            self._states.pop(task, None)
        return self._mirror.remove_tasks(gone)

    # ------------------------------------------------------------------------------------ out

    def _is_due(self, stop: str | None) -> bool:
        now = self._made_from(stop)
        half_answered = 2 * self._n_open() < len(self._order)
        if self._sent is None or now[:2] != self._sent[:2]:
            return True
        return half_answered and now != self._sent

    def _made_from(self, stop: str | None) -> tuple[Any, ...]:
        rounds = self._campaign.rounds()
        fitted = rounds[-1].n_answers if rounds else 0
        return stop is None, fitted, self._campaign.labels.n_annotations, len(self._states)

    def _push(self, stop: str | None) -> Pushed:
        order = [] if stop is not None else self._ranked()
        pushed = push_order(self._client, self._link.project, order, self._states)
        self._order = pushed.tasks
        self._sent = self._made_from(stop)
        return pushed

    def _ranked(self) -> list[int]:
        """Return the numbers of the next tasks; those that nobody can take come last."""
        numbers = {state.name: number for number, state in self._states.items()}
        deleted = max(len(self._campaign.labels.tasks) - len(numbers), 0)
        names = [as_text(task) or "" for task in rank_tasks(self._campaign, self._n + deleted)]
        order = [numbers[name] for name in names if name in numbers][: self._n]
        n_workers = len(self._campaign.labels.workers)
        return sorted(order, key=lambda task: self._is_skipped(self._states[task], n_workers))

    @staticmethod
    def _is_skipped(state: TaskState, n_workers: int) -> bool:
        """Return whether every known worker has answered or skipped a task."""
        return state.skips > 0 and state.annotations + state.skips >= n_workers

    def _n_open(self) -> int:
        """Return how many places of the order are free."""
        found = (self._states[task] for task in self._order if task in self._states)
        return sum(max(one.overlap - one.annotations, 0) for one in found if one.is_open())
