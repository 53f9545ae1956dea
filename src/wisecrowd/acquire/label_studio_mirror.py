"""Label Studio's annotations inside a campaign, from snapshots of its API.

A table beside the answers has one row per annotation. What counts for a pair of task and worker is
a function of its rows, and the campaign is told where it differs. A webhook is only a hint to take
the next snapshot at once: every annotator can read its secret, so its content proves nothing.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_input import id_text
from wisecrowd.acquire.campaign_store import damaged
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.platforms.label_records import mapping, mappings
from wisecrowd.io.platforms.label_studio import label_given, task_of, worker_of
from wisecrowd.io.platforms.values import as_text

CONTROLS = ("Choices", "Rating", "Taxonomy")  # whose answers are classes
SETTING, HINTS = "label_studio", "label_studio_hints"
ACTIONS = (
    "ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED",
    "TASKS_CREATED", "TASKS_DELETED",
)  # fmt: skip
# ``task`` is Label Studio's number; ``name`` is the task in the campaign, and like ``worker`` and
# ``label`` JSON, which can hold any text. ``arrived`` counts changes.
_TABLE = """
CREATE TABLE IF NOT EXISTS label_studio (
    annotation INTEGER PRIMARY KEY,
    task INTEGER,
    name TEXT,
    worker TEXT,
    label TEXT,
    updated REAL NOT NULL,
    deleted INTEGER NOT NULL,
    arrived INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS label_studio_pair ON label_studio (name, worker);
CREATE INDEX IF NOT EXISTS label_studio_task ON label_studio (task);
CREATE INDEX IF NOT EXISTS label_studio_arrived ON label_studio (arrived);
"""


@dataclass(frozen=True)
class Link:
    """The project of a campaign.

    Attributes
    ----------
    url : str
        Address of the server.
    project : int
    control : str
        Name of the control whose answers count.
    task_key : str or None
        Key of a task's data that is its id in the campaign; None is Label Studio's own number.
    """

    url: str
    project: int
    control: str
    task_key: str | None = None

    @classmethod
    def of(cls, campaign: Campaign) -> Link | None:
        """Return the link that a campaign has stored, or None."""
        found = campaign._store.get(SETTING)
        if found is None:
            return None
        known = found if isinstance(found, dict) else {}
        types: dict[str, Any] = {"url": str, "project": int, "control": str,
                                 "task_key": (str, type(None))}  # fmt: skip
        if set(known) != set(types) or not all(
            isinstance(known[name], wanted) for name, wanted in types.items()
        ):
            raise damaged(campaign._store, "its link to Label Studio is not valid")
        return cls(**known)

    def store(self, campaign: Campaign) -> None:
        """Store the link; a campaign that belongs to another project is refused."""
        before = Link.of(campaign)
        if before is not None and before._identity() != self._identity():
            raise DataError(
                f"The campaign belongs to project {before.project} of {before.url}, control "
                f"{before.control!r}; take another folder for project {self.project}."
            )
        if before != self:
            with campaign._changing():
                campaign._store.set(SETTING, asdict(self))

    def _identity(self) -> tuple[Any, ...]:
        """Return what must not change; a server may move to another address."""
        return self.project, self.control, self.task_key

    def name_of(self, task: dict[str, Any]) -> str | None:
        """Return the id of a task in the campaign, or None if its data lack it."""
        return as_text(task_of(task, self.task_key))


class Told(NamedTuple):
    """What the campaign was told: answers that are new or changed, withdrawn, and refused."""

    new: int = 0
    withdrawn: int = 0
    refused: int = 0

    def plus(self, other: Told) -> Told:
        """Return the sums."""
        return Told(*(a + b for a, b in zip(self, other, strict=True)))


class _Row(NamedTuple):
    annotation: int
    task: int | None
    name: str | None
    worker: str | None
    label: str | None
    updated: float
    deleted: int = 0


def webhook_secret(secret: str) -> str:
    """Return the secret that webhooks send, derived from that of the service.

    Every annotator of Label Studio can read the headers of its webhooks. They then know this
    secret, but not the one with which answers can be posted under any name.
    """
    return hmac.new(secret.encode(), b"label-studio webhooks", "sha256").hexdigest()


def leave_hint(campaign: Campaign) -> None:
    """Tell the watch of a campaign that something has changed in Label Studio."""
    with campaign._store.transaction():
        campaign._store.set(HINTS, n_hints(campaign) + 1)


def n_hints(campaign: Campaign) -> int:
    """Return how many hints there were so far."""
    found = campaign._store.get(HINTS)
    return found if type(found) is int else 0


def find_control(project: dict[str, Any], asked: str | None) -> str:
    """Return the control whose answers are the labels; it must be named if there are several.

    Examples
    --------
    >>> find_control({"id": 1, "parsed_label_config": {"mood": {"type": "Choices"}}}, None)
    'mood'
    """
    declared = mapping(project.get("parsed_label_config"))
    usable = [name for name, one in declared.items() if mapping(one).get("type") in CONTROLS]
    where = f"Project {project.get('id')}"
    if not usable:
        raise DataError(
            f"{where} has no control whose answers are classes ({', '.join(CONTROLS)}); add one "
            "to its labelling interface."
        )
    if asked is not None and asked not in usable:
        raise DataError(
            f"{where} has no control {asked!r}{suggestion(asked, usable)}; its controls are "
            f"{describe_ids(usable)}."
        )
    if asked is None and len(usable) > 1:
        raise DataError(
            f"{where} has the controls {describe_ids(usable)}; choose one with "
            f"{for_reader('label=...', '--label NAME')}."
        )
    return asked or usable[0]


class AnnotationMirror:
    """The annotations of a linked project, kept inside the database of its campaign.

    Parameters
    ----------
    campaign : Campaign
    link : Link

    Attributes
    ----------
    left_out : set of int
        Numbers of tasks that are not in the campaign, whose tasks are fixed.
    """

    def __init__(self, campaign: Campaign, link: Link) -> None:
        self._campaign, self._link = campaign, link
        self.left_out: set[int] = set()
        with campaign._changing():
            for statement in _TABLE.split(";")[:-1]:
                campaign._store.run(statement)

    def mark(self) -> int:
        """Return the number of the latest change; take it before a snapshot is requested."""
        return int(self._rows("SELECT COALESCE(MAX(arrived), 0) FROM label_studio")[0][0])

    # ------------------------------------------------------------------------------ snapshots

    def take_snapshot(self, tasks: Sequence[dict[str, Any]], mark: int) -> Told:
        """Take in the present state of tasks, all of their annotations included.

        Rows that another snapshot has changed after ``mark`` stay: they may be newer than this
        one, and the next one decides.
        """
        with self._campaign._changing():
            names = self._join(tasks)
            known = {row.annotation: (row, arrived) for row, arrived in self._dated(list(names))}
            pairs: set[tuple[str, str]] = set()
            present = set()
            for task in tasks:
                for made in mappings(task.get("annotations")):
                    row = self._row(made, task.get("id"), names)
                    if row is None:
                        continue
                    present.add(row.annotation)
                    before, arrived = known.get(row.annotation, (None, 0))
                    if before != row and arrived <= mark:
                        pairs |= self._put(row, before)
            gone = [row for number, (row, arrived) in known.items()
                    if number not in present and arrived <= mark and not row.deleted]  # fmt: skip
            return self._settle(pairs | self._delete(gone))

    def annotated_tasks(self) -> list[int]:
        """Return the numbers of the tasks that have annotations."""
        found = self._rows("SELECT DISTINCT task FROM label_studio WHERE NOT deleted ORDER BY task")
        return [int(row[0]) for row in found if row[0] is not None]

    def remove_tasks(self, numbers: Iterable[int]) -> Told:
        """Withdraw the answers about tasks that no longer exist."""
        with self._campaign._changing():
            return self._settle(self._delete([row for row, _ in self._dated(list(numbers))]))

    # ----------------------------------------------------------------------------------- rows

    def _join(self, tasks: Iterable[dict[str, Any]]) -> dict[int, str]:
        """Return the name of each task's number; new tasks join a campaign that is open to them."""
        names = {}
        for task in tasks:
            number, name = _number(task.get("id")), self._name(task)
            if number is None or name is None:
                continue
            try:
                self._campaign._intake.task_code(json.loads(name))
            except DataError:  # a task that is not in the campaign, or has no name for it
                self.left_out.add(number)
            else:
                names[number] = name
        return names

    def _name(self, task: dict[str, Any]) -> str | None:
        """Return a task's id in the campaign as JSON."""
        name = self._link.name_of(task)
        return None if name is None or not _is_text(name) else self._like_others("tasks", name)

    def _like_others(self, table: str, text: str) -> str | None:
        """Return an id as JSON: a number in a campaign whose ids are numbers; None if it cannot.

        A campaign has ids of one type, and those of files may be numbers.
        """
        ids = self._campaign._log.ids[table]
        if not ids or isinstance(ids[0], str):
            return id_text(text)
        is_number = type(ids[0]) is int and text.isascii() and text.isdigit()
        return id_text(int(text)) if is_number else None

    def _row(self, made: dict[str, Any], task: Any, names: dict[int, str]) -> _Row | None:
        """Return the row of an annotation; None if it lacks what every annotation has."""
        number, place, worker = _number(made.get("id")), _number(task), as_text(worker_of(made))
        label = label_given(made, self._link.control)
        if number is None or place not in names or worker is None:
            return None
        if not _is_text(worker) or not _is_text(label or ""):
            return None
        # A time to come would outlast every later correction.
        updated = min(epoch_of(made.get("updated_at") or made.get("created_at")), time.time())
        by = self._like_others("workers", worker)
        given = None if label is None else id_text(label)
        return None if by is None else _Row(number, place, names[place], by, given, updated)

    def _put(self, row: _Row, before: _Row | None) -> set[tuple[str, str]]:
        """Store a row; return the pairs whose answer may have changed."""
        self._campaign._store.run(
            "INSERT OR REPLACE INTO label_studio SELECT ?, ?, ?, ?, ?, ?, ?, "
            "COALESCE(MAX(arrived), 0) + 1 FROM label_studio",
            tuple(row),
        )
        pairs = {(one.name, one.worker) for one in (row, before) if one is not None}
        return {(name, worker) for name, worker in pairs if name is not None and worker is not None}

    def _delete(self, known: list[_Row]) -> set[tuple[str, str]]:
        """Mark annotations as deleted; return the pairs whose answer may have changed."""
        pairs: set[tuple[str, str]] = set()
        for before in known:
            if not before.deleted:
                pairs |= self._put(before._replace(deleted=1), before)
        return pairs

    def _settle(self, pairs: set[tuple[str, str]]) -> Told:
        """Tell the campaign the answer of each pair: its latest annotation that has a label.

        The campaign gets them in the order of time, as if they had come one by one.
        """
        told = Told()
        for updated, name, worker, label in sorted(self._latest(*pair) for pair in pairs):
            said = self._like_others("classes", json.loads(label)) if label else "null"
            try:
                if said is None:
                    raise DataError("a text among classes that are numbers")
                task, by, given = (json.loads(one) for one in (name, worker, said))
                changed = self._campaign.tell(task, by, given, updated)
            except DataError:  # a label outside of the classes that the campaign declares
                told = told.plus(Told(refused=1))
                continue
            if changed:
                told = told.plus(Told(new=1) if label else Told(withdrawn=1))
        return told

    def _latest(self, name: str, worker: str) -> tuple[float, str, str, str]:
        """Return time, task, worker and label of what counts for a pair; "" if nothing does."""
        found = self._rows(
            "SELECT updated, label FROM label_studio WHERE name = ? AND worker = ? "
            "AND NOT deleted AND label IS NOT NULL ORDER BY updated DESC, annotation DESC LIMIT 1",
            (name, worker),
        )
        updated, label = found[0] if found else (0.0, "")
        return updated, name, worker, label

    def _dated(self, tasks: list[Any]) -> list[tuple[_Row, int]]:
        """Return the rows of tasks, each with the number of its change."""
        found = [
            self._rows(
                "SELECT annotation, task, name, worker, label, updated, deleted, arrived "
                "FROM label_studio WHERE task = ?", (task,),
            )
            for task in tasks
        ]  # fmt: skip
        return [(_Row(*row[:-1]), row[-1]) for rows in found for row in rows]

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._campaign._store.rows(statement, values)


def counting_answers(
    tasks: Iterable[dict[str, Any]], link: Link
) -> list[tuple[str, str, str, float]]:
    """Return (task, worker, label, time) of the annotations that count, in the order of time."""
    latest: dict[tuple[str, str], tuple[float, int, str]] = {}
    for task in tasks:
        name = link.name_of(task)
        for made in mappings(task.get("annotations")):
            worker, label = as_text(worker_of(made)), label_given(made, link.control)
            if name is None or worker is None or label is None:
                continue
            found = epoch_of(made.get("updated_at") or made.get("created_at")), made["id"], label
            latest[name, worker] = max(found, latest.get((name, worker), found))
    rows = [(*pair, label, time) for pair, (time, _, label) in latest.items()]
    return sorted(rows, key=lambda row: (row[3], row[:2]))


def epoch_of(text: Any) -> float:
    """Return a time of Label Studio in seconds since 1970; 0 if it is not one.

    Examples
    --------
    >>> epoch_of("1970-01-01T00:01:00.5Z"), epoch_of(None)
    (60.5, 0.0)
    """
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _number(value: Any) -> int | None:
    """Return a number that Label Studio can have given, or None."""
    return value if type(value) is int and 0 < value < 2**63 else None


def _is_text(value: str) -> bool:
    """Return whether a text can be written, which one with half a character cannot."""
    return value.isascii() or not any("\ud800" <= mark <= "\udfff" for mark in value)
