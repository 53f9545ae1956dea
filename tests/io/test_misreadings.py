"""Files of many rows with one worker, one answer or a worker per task are questioned."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.io.inspection import inspect
from wisecrowd.io.misreadings import ACCEPTABLE, worker_like

PEOPLE = ("ann", "bob", "cem")


def rows(answer, worker=lambda i, j: "all", n_tasks=8):
    """Return rows of a table in which three people answered, and ``worker`` names somebody."""
    return [
        {"task": f"t{i}", "worker": worker(i, j), "reader": who, **answer(i, j)}
        for i in range(n_tasks)
        for j, who in enumerate(PEOPLE)
    ]


# One answer per kind; tasks and people differ, so that nothing but the workers is questionable.
ANSWERS = {
    "labels": lambda i, j: {"label": "ab"[(i + (j == 2)) % 2]},
    "ordered": lambda i, j: {"label": 1 + (i + j) % 3},
    "numbers": lambda i, j: {"value": 10 * i + j},
    "sets": lambda i, j: {"labels": ["a", "a|b", "b"][(i + j) % 3]},
    "texts": lambda i, j: {"text": f"a text of task {i} {'!' * j}"},
    "pairs": lambda i, j: {"left": f"m{i % 4}", "right": "m5", "label": ("left", "right")[j % 2]},
    "same": lambda i, j: {
        "left": f"m{i}", "right": f"m{i + 1}", "label": ("same", "different")[j % 2]
    },
    "rankings": lambda i, j: {"ranking": ["a > b > c", "b > a > c"][(i + j) % 2]},
    "boxes": lambda i, j: {"x": i, "y": j, "width": 9, "height": 9, "label": "car"},
    "sequences": lambda i, j: {"tags": ["B-PER O", "O O"][(i + j) % 2]},
}  # fmt: skip


def written(path, table):
    """Write a table by the suffix of the path."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(table), path)
    else:
        lines = [list(table[0]), *(row.values() for row in table)]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_one_worker_is_questioned(tmp_path, kind, suffix):
    path = written(tmp_path / f"a{suffix}", rows(ANSWERS[kind]))
    with pytest.raises(DataError, match=r"24 rows are by one worker, 'all'.*worker='reader'"):
        wc.read(path, type=kind, worker="worker")
    data = wc.read(path, type=kind, worker="worker", accept="one-worker", duplicates="last")
    assert data.n_workers == 1
    assert any("one worker" in note for note in data.notes)
    assert wc.read(path, type=kind, worker="reader").n_workers == 3


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_worker_per_task_is_questioned(tmp_path, kind):
    path = written(tmp_path / "a.csv", rows(ANSWERS[kind], lambda i, j: f"row{3 * i + j}", 12))
    with pytest.raises(DataError, match=r"none of the 36 workers has a second.*worker='reader'"):
        wc.read(path, type=kind, worker="worker")
    data = wc.read(path, type=kind, worker="worker", accept=["worker-per-task"])
    assert data.n_workers == 36


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("kind", ["labels", "ordered", "sets", "texts", "numbers"])
def test_one_answer_is_questioned(tmp_path, kind, suffix):
    name = {"sets": "labels", "texts": "text", "numbers": "value"}.get(kind, "label")
    table = rows(lambda i, j: {name: 5}, lambda i, j: PEOPLE[j])
    path = written(tmp_path / f"a{suffix}", [{**row, name: "5"} for row in table])
    with pytest.raises(DataError, match=r"24 rows have the same answer, '?5'?;"):
        wc.read(path, type=kind, worker="worker")
    assert wc.read(path, type=kind, worker="worker", accept="one-answer").n_annotations == 24


def test_declared_classes_may_lack_labels(tmp_path):
    table = rows(lambda i, j: {"label": "yes"}, lambda i, j: PEOPLE[j])
    path = written(tmp_path / "a.csv", table)
    assert wc.read(path, worker="worker", classes=["yes", "no"]).n_classes == 2


@pytest.mark.filterwarnings("ignore")  # of the two spellings
def test_spellings_of_one_answer_are_one(tmp_path):
    table = rows(lambda i, j: {"label": "xX"[j % 2]}, lambda i, j: PEOPLE[j])
    with pytest.raises(DataError, match="the same answer"):
        wc.read(written(tmp_path / "a.csv", table), worker="worker")


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_questioned(tmp_path):
    few = written(tmp_path / "few.csv", rows(ANSWERS["labels"], n_tasks=3))
    assert wc.read(few, worker="worker", duplicates="last").n_workers == 1
    empty = rows(lambda i, j: {"labels": "" if i % 2 else "a"}, lambda i, j: PEOPLE[j])
    path = written(tmp_path / "empty.csv", empty)
    assert wc.read(path, type="sets", worker="worker").n_classes == 1
    poll = [{"task": "t", "worker": f"w{i}", "label": "ab"[i % 2]} for i in range(50)]
    assert wc.read(written(tmp_path / "poll.csv", poll)).n_workers == 50
    crowd = rows(ANSWERS["labels"])
    tables = {name: [row[name] for row in crowd] for name in ("task", "worker", "label")}
    tables["task"] = list(range(len(crowd)))
    assert wc.CrowdLabels.from_frame(tables).n_workers == 1  # not a file
    alone = written(tmp_path / "alone.csv", rows(ANSWERS["labels"]))
    crowd = wc.read(alone, worker="reader", exclude_workers=["bob", "cem"])
    assert crowd.n_workers == 1  # as asked
    wide = tmp_path / "wide.csv"
    wide.write_text("id,ann\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(20)))
    assert wc.read(wide, worker_columns=["ann"]).n_workers == 1  # this column is named


def test_one_file_per_worker(tmp_path):
    paths = []
    for who in PEOPLE:
        table = [{"task": f"t{i}", "worker": who, "label": "ab"[i % 2]} for i in range(20)]
        paths.append(written(tmp_path / f"{who}.csv", table))
    assert wc.read(paths).n_workers == 3
    with pytest.raises(DataError, match="add the files of the other workers"):
        wc.read(paths[0])


@pytest.mark.parametrize("kind", ["labels", "sets", "texts", "numbers"])
def test_blank_cells_of_a_wide_sheet(tmp_path, kind):
    path = tmp_path / "a.csv"
    marks = "".join(f"{i},{'1' * (i % 2)},{'1' * (i % 3 == 0)},\n" for i in range(9))
    path.write_text("id,rater_1,rater_2,rater_3\n" + marks)
    with pytest.raises(DataError, match=r"have the same one, '1', and \d+ are blank; if"):
        wc.read(path, wide=True, type=kind)
    assert wc.read(path, wide=True, type=kind, accept="one-answer").n_annotations == 7


def coco(tmp_path, more, n_images=8):
    images = [{"id": i, "file_name": f"{i}.jpg"} for i in range(n_images)]
    annotations = [
        {"id": 3 * i + j, "image_id": i, "category_id": 1, "bbox": [i, j, 20, 20],
         "score": 0.5 + j / 9, "occluded": bool(j % 2), **more(i, who)}
        for i in range(n_images)
        for j, who in enumerate(PEOPLE)
    ]  # fmt: skip
    path = tmp_path / "boxes.json"
    categories = [{"id": 1, "name": "car"}]
    document = {"images": images, "categories": categories, "annotations": annotations}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (lambda i, who: {"reader": who}, "if 'reader' names"),
        (lambda i, who: {"attributes": {"drawn by": who}}, r"if 'attributes.drawn by' names"),
        (lambda i, who: {"site": f"s{i % 2}"}, "give every annotation the key annotator"),
        (lambda i, who: {}, "give every annotation the key annotator"),
    ],
)
def test_coco_without_workers(tmp_path, more, named):
    path = coco(tmp_path, more)
    with pytest.raises(DataError, match=f"24 rows are by one worker, 'boxes' .*{named}"):
        wc.read(path)
    assert wc.read(path, accept="one-worker").n_workers == 1
    assert wc.read(coco(tmp_path, lambda i, who: {"annotator": who})).n_workers == 3
    assert wc.read(coco(tmp_path, more, n_images=2)).n_workers == 1


def test_one_annotator_of_a_platform_is_noted(tmp_path):
    exported = [
        {"id": i, "data": {"text": "?"},
         "annotations": [{"id": i, "completed_by": 7, "result": [
             {"from_name": "mood", "to_name": "text", "type": "choices",
              "value": {"choices": ["ab"[i % 2]]}}]}]}
        for i in range(20)
    ]  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps(exported))
    data = wc.read(path)
    assert data.n_workers == 1
    assert "all 20 rows are by one worker, '7'" in data.notes


def test_doccano_with_a_key_of_workers(tmp_path):
    records = [
        {"id": i, "text": "?", "label": ["ab"[i % 2]], "annotator": PEOPLE[i % 3]}
        for i in range(20)
    ]
    path = tmp_path / "admin.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    with pytest.raises(DataError, match="'annotator' names the workers, write the rows of each"):
        wc.read(path, format="doccano")
    for one in records:
        del one["annotator"]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    assert "all 20 rows are by one worker, 'admin'" in wc.read(path, format="doccano").notes


def test_packs(tmp_path):
    one = written(tmp_path / "a.csv", rows(ANSWERS["labels"]))
    for path, name, options in (
        (one, "one-worker", {"worker": "worker", "duplicates": "last"}),
        (written(tmp_path / "b.csv", rows(ANSWERS["labels"], lambda i, j: f"{i} {j}", 12)),
         "worker-per-task", {"worker": "worker"}),
        (written(tmp_path / "c.csv", rows(lambda i, j: {"label": "a"})), "one-answer",
         {"worker": "reader"}),
    ):  # fmt: skip
        folder = tmp_path / "pack"
        with pytest.raises(DataError, match=f"accept='{name}'"):
            wc.pack(path, folder, **options)
        assert not folder.exists()
        packed = wc.pack(path, tmp_path / name, accept=name, **options)
        assert wc.read(tmp_path / name).n_annotations == packed.summary.n_annotations


def test_inspect_describes_what_others_refuse(tmp_path):
    path = written(tmp_path / "a.csv", rows(ANSWERS["labels"]))
    seen = inspect(path, worker="worker")
    assert any("accept='one-worker'" in remark for remark in seen.remarks)
    assert seen.needs_type is None
    seen = inspect(path, worker="worker", accept="one-worker")
    assert not any("refuse" in remark and "accept=" in remark for remark in seen.remarks)


def test_options(tmp_path):
    path = written(tmp_path / "a.csv", rows(ANSWERS["labels"]))
    for wrong in ("one_worker", ["one-worker", 3], 5):
        with pytest.raises(ParameterError, match="accept"):
            wc.read(path, worker="reader", accept=wrong)
    with shell_spelling(), pytest.raises(DataError, match="--accept one-worker"):
        wc.read(path, worker="worker")
    assert wc.read(path, worker="reader", accept=ACCEPTABLE).n_workers == 3


def test_columns_that_look_like_workers():
    tasks = [f"t{i}" for i in range(6) for _ in range(2)]
    columns = {
        "split": ["train"] * 6 + ["test"] * 6,  # of tasks
        "who": ["ann", "bob"] * 6,
        "row": list(range(12)),
        "sure": [True, False] * 6,
        "share": [0.5, 1.0] * 6,
        "empty": ["", "a"] * 6,
        "half": ["x", "y"] * 6,
    }
    assert worker_like(columns, tasks) == ["who", "half"]
    assert worker_like({"annotator": ["ann", "bob"] * 6, "half": ["x", "y"] * 6}, range(12)) == [
        "annotator"
    ]
