"""Checks of options that write a result for other programs, and the writing itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any, NamedTuple

from wisecrowd.cli.options.exports import BoxExport, Exports, PreferenceExport
from wisecrowd.cli.options.group import Group
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.outputs import OwnEntry, note_written, write_result
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.platforms.coco import write_coco
from wisecrowd.io.platforms.label_studio_predictions import require_name, write_predictions
from wisecrowd.io.platforms.label_studio_results import KINDS
from wisecrowd.io.preference_rows import check_preferences_path, write_preferences
from wisecrowd.io.soft_labels import (
    check_soft_path,
    ids_path,
    is_data_set,
    require_hugging_face,
    write_soft_labels,
)
from wisecrowd.storage.manifest import Manifest, write_manifest

_TASKS = (
    "Label Studio's Import makes new tasks of it; for those in the project use --existing-tasks"
)
_ROWS = "rows for Label Studio's POST /api/projects/ID/import/predictions"


class Outcome(NamedTuple):
    """What a command has made, and how it read the files that it made this of."""

    fit: Any
    manifest: Manifest
    notes: Notes
    data: Any = None
    sources: list[str] | None = None
    reading: Reading = Reading()


def checked_places(groups: Iterable[Group]) -> list[str]:
    """Return all files that groups will write, except manifests; refuse wrong names."""
    found = []
    for group in groups:
        if isinstance(group, PreferenceExport) and group.preferences is not None:
            check_preferences_path(group.preferences)
        if isinstance(group, Exports) and group.soft_labels is not None:
            form = check_soft_path(group.soft_labels)
            found += [str(ids_path(group.soft_labels))] if form == "npy" else []
            if form == "folder":
                require_hugging_face()
        found += group.places()
    return found


def own_folders(asked: Exports) -> dict[str, OwnEntry]:
    """Return how to recognise a folder of soft labels as ours."""
    return {} if asked.soft_labels is None else {asked.soft_labels: is_data_set}


def check_predictions(asked: Exports, sources: list[str], reading: Reading) -> None:
    """Refuse, before any computation, predictions that Label Studio would refuse."""
    if asked.predictions is not None:
        require_name(sources, asked.to_name, reading.format, reading.encoding)


def check_kind_of_predictions(asked: Exports, kind: str, method: str) -> None:
    """Refuse predictions of answers that Label Studio cannot show."""
    if asked.predictions is not None and kind not in KINDS:
        raise ParameterError(
            f"--predictions-to is for {', '.join(KINDS)}, and {method} takes {kind}; leave it out."
        )


@singledispatch
def write(asked: Group, made: Outcome) -> None:
    """Write the files that a group of options asks for, each with its manifest."""


@write.register
def _(asked: Exports, made: Outcome) -> None:
    if asked.soft_labels is not None:
        written = write_soft_labels(made.fit, asked.soft_labels)
        for path in written:
            write_manifest(path, made.manifest)
        note_written(made.notes, asked.soft_labels, f"wrote {', '.join(map(str, written))}")
    if asked.predictions is not None:
        how = made.reading
        write_predictions(
            made.fit, asked.predictions, made.sources, task=how.task, label=how.label,
            format=how.format, encoding=how.encoding, from_name=asked.from_name,
            to_name=asked.to_name, existing_tasks=asked.existing_tasks,
        )  # fmt: skip
        write_manifest(asked.predictions, made.manifest)
        use = _ROWS if asked.existing_tasks else _TASKS
        note_written(made.notes, asked.predictions, f"wrote {asked.predictions}: {use}")


@write.register
def _(asked: PreferenceExport, made: Outcome) -> None:
    if asked.preferences is None:
        return
    known = made.fit if "reliability_" in vars(made.fit) else None
    if asked.items is None:
        made.notes("--preferences-to has the ids of items as texts; --items FILE gives their texts")
    count = write_preferences(
        asked.preferences, made.data, known, items=asked.items, prompts=asked.prompts
    )
    write_manifest(asked.preferences, made.manifest)
    note_written(made.notes, asked.preferences, f"wrote {count} preferences to {asked.preferences}")


@write.register
def _(asked: BoxExport, made: Outcome) -> None:
    if asked.assignments is not None:
        rows = made.fit.assignment_columns(made.data)
        write_result(rows, asked.assignments, made.manifest, made.notes, estimates=False)
    if asked.coco is not None:
        count = write_coco(asked.coco, made.fit)
        write_manifest(asked.coco, made.manifest)
        note_written(made.notes, asked.coco, f"wrote {count} boxes to {asked.coco}")
