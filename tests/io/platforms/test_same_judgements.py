"""Every platform's fixture carries the same judgements; what each keeps besides is its own."""

from __future__ import annotations

import re

import numpy as np
import pytest

from wisecrowd.io.formats import PLATFORMS, format_of
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read, read_truth

JUDGEMENTS = {
    ("1", "ann", "cat"), ("1", "bob", "cat"), ("1", "cem", "dog"),
    ("2", "ann", "dog"), ("2", "bob", "dog"), ("2", "cem", "dog"),
    ("3", "ann", "cat"), ("3", "bob", "dog"),
}  # fmt: skip

# fixture: (format, what it calls tasks, workers and classes where not as above)
NUMBERED = {"1": "ann", "2": "bob", "3": "cem"}
UUIDS = {f"00000000-0000-4000-8000-00000000000{n}": name for n, name in NUMBERED.items()}
EXPORTS = {
    "label_studio.json": ("label-studio", NUMBERED),
    "label_studio_min.json": ("label-studio", NUMBERED),
    "label_studio.csv": ("label-studio", NUMBERED),
    "mturk.csv": ("mturk", {}),
    "toloka.tsv": ("toloka", {}),
    "appen.csv": ("appen", {}),
    "prodigy.jsonl": ("prodigy", {}),
    "argilla.json": ("argilla", UUIDS),
    "argilla_flattened.jsonl": ("argilla", UUIDS),
    "doccano": ("doccano", {}),
    "ground_truth": ("ground-truth", {}),
    "ground_truth.zip": ("ground-truth", {}),
    "ground_truth_payload.json": ("ground-truth", {}),
    "zooniverse.csv": ("zooniverse", {}),
    "labelbox.ndjson": ("labelbox", {}),
    "cvat": ("cvat", {}),
    "cvat.zip": ("cvat", {}),
    "lewidi.json": ("lewidi", {}),
    "peerannot.json": ("peerannot", {}),
    "crowd_kit.csv": ("csv", {}),
    "cleanlab.csv": ("cleanlab", {f"annotator_{n}": name for n, name in NUMBERED.items()}),
    "hugging_face.jsonl": ("hugging-face", {}),
}
TASKS = {"-101": "1", "102": "2", "-103": "3"}
CLASSES = {"0": "cat", "1": "dog"}


def plain_task(task: str) -> str:
    found = re.fullmatch(r"(?:s3://pets/)?(\d)(?:\.jpg)?", task)
    return TASKS[task] if found is None else found[1]


def plain_worker(worker: str, names: dict[str, str]) -> str:
    worker = names.get(worker, worker)
    return re.sub(r"^(pets-|public\.us-east-1\.|not-logged-in-)|@example\.org$", "", worker)


def people(labels, names=None) -> set[tuple[str, str, str]]:
    """Return the judgements of everybody who is no model, with the names of this test."""
    table = labels.to_dict()
    kinds = table.get("worker_kind", np.full(labels.n_annotations, "human"))
    rows = zip(table["task"], table["worker"], table["label"], kinds, strict=True)
    return {
        (plain_task(task), plain_worker(worker, names or {}), CLASSES.get(label, label))
        for task, worker, label, kind in rows
        if kind != "model"
    }


@pytest.mark.parametrize("name", EXPORTS)
def test_every_platform_gives_the_same_judgements(export, name):
    format, names = EXPORTS[name]
    path = export(name)
    first = path[0] if isinstance(path, list) else path
    assert format_of(Source(first)) == format
    labels = read(path)
    assert people(labels, names) == JUDGEMENTS
    if format in PLATFORMS:
        assert any(note.startswith(f"read as {format}") for note in labels.notes)
    chosen = read(path, format)  # said instead of recognised
    assert people(chosen, names) == JUDGEMENTS


def test_every_platform_has_a_fixture():
    covered = {format for format, _ in EXPORTS.values()}
    # A plain table, one that is refused, another name for cleanlab, and boxes (test_box_files.py).
    assert set(PLATFORMS) - covered == {"crowd-kit", "scale", "wide", "coco"}


def test_crowd_kit_can_be_named(export):
    assert people(read(export("crowd_kit.csv"), "crowd-kit")) == JUDGEMENTS


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("label_studio.json", {"timestamp", "duration"}),
        ("label_studio_min.json", {"timestamp", "duration"}),
        ("label_studio.csv", {"timestamp", "duration"}),
        ("mturk.csv", {"timestamp", "duration", "cost"}),
        ("toloka.tsv", {"timestamp", "duration", "cost"}),
        ("appen.csv", {"timestamp", "duration"}),
        ("prodigy.jsonl", {"timestamp"}),
        ("argilla.json", set()),
        ("ground_truth", {"timestamp", "duration"}),
        ("zooniverse.csv", {"timestamp", "duration"}),
        ("labelbox.ndjson", {"timestamp", "duration"}),
        ("lewidi.json", set()),
    ],
)
def test_times_and_costs_are_kept(export, name, columns):
    assert set(read(export(name)).columns) == columns


@pytest.mark.parametrize(
    "name",
    ["label_studio.json", "label_studio_min.json", "label_studio.csv", "appen.csv",
     "zooniverse.csv", "labelbox.ndjson", "ground_truth", "mturk.csv"],
)  # fmt: skip
def test_durations_agree(export, name):
    labels = read(export(name))
    human = slice(None) if labels.worker_kind is None else (
        labels.worker_kind[labels.worker] != "model"
    )  # fmt: skip
    assert sorted(labels.columns["duration"][human]) == [11, 12, 13, 21, 22, 23, 31, 32]


@pytest.mark.parametrize("name", ["label_studio.json", "ground_truth", "labelbox.ndjson"])
def test_timestamps_agree(export, name):
    labels = read(export(name))
    assert labels.columns["timestamp"][0] == np.datetime64("2024-05-01T10:01:00", "us")


@pytest.mark.parametrize("name", ["label_studio.json", "toloka.tsv", "appen.csv", "zooniverse.csv"])
def test_gold_of_the_export_is_read_where_truth_is_asked_for(export, name):
    assert read_truth(export(name)).to_pydict() == {"task": ["2"], "label": ["dog"]}


@pytest.mark.parametrize("name", ["label_studio.json", "argilla.json", "argilla_flattened.jsonl"])
def test_predictions_are_workers_of_kind_model(export, name):
    labels = read(export(name), kinds=("human", "model"))
    model = labels.workers.tolist().index("model:vit-1")
    assert labels.worker_kind[model] == "model"
    assert labels.labels_per_worker[model] == 3


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("label_studio.json", "1 cancelled or skipped"),
        ("label_studio.csv", "1 empty annotations"),
        ("mturk.csv", "1 rejected"),
        ("toloka.tsv", "1 rejected"),
        ("appen.csv", "1 tainted"),
        ("prodigy.jsonl", "1 ignored"),
        ("argilla_flattened.jsonl", "1 drafts and discarded"),
        ("doccano", "1 not labelled"),
        ("zooniverse.csv", "1 made with an older major version"),
        ("zooniverse.csv", "1 repeated by the same user"),
        ("zooniverse.csv", "1 made before the project went live"),
        ("labelbox.ndjson", "1 skipped"),
        ("cvat", "1 shapes"),
    ],
)
def test_what_is_dropped_is_counted_and_said(export, name, reason):
    assert any("left out" in note and reason in note for note in read(export(name)).notes)
