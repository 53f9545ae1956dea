"""Our order in Label Studio: predictions without a result, whose scores its queue sorts by.

Label Studio hands out tasks that have a prediction of the project's current version, lowest score
first, as long as they have fewer annotations than their overlap. A query is therefore a prediction
and one place more than the task has annotations. Everything else stays closed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_api import LabelStudioClient

PREFIX = "wisecrowd-"
# The order holds only if the project's maximum is 1: above it, Label Studio prefers tasks that are
# begun. More answers of a task come from its own overlap.
SETTINGS = {
    "sampling": "Uncertainty sampling",
    "maximum_annotations": 1,
    "show_overlap_first": False,
    "show_collab_predictions": False,
}


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
