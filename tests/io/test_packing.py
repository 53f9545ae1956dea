"""Packs: the same content for any order and split, resumable, and never silently damaged."""

from __future__ import annotations

import errno
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import pack_buckets, pack_progress, packing, tables
from wisecrowd.io.id_columns import hash_ids
from wisecrowd.io.tables import write_table
from wisecrowd.packs.pack import Pack, is_pack, shards_for


def crowd_columns(seed=0, n_tasks=40, n_workers=6):
    """Return columns with weights, times, abstentions and a few repeats."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), 4)
    worker = np.concatenate([rng.permutation(n_workers)[:4] for _ in range(n_tasks)])
    task, worker = np.append(task, task[:3]), np.append(worker, worker[:3])
    return {
        "task": np.array([f"t{i}" for i in task], dtype=object),
        "worker": np.array([f"w{j}" for j in worker], dtype=object),
        "label": np.array(["a", "b", "c", "?"], dtype=object)[rng.integers(4, size=len(task))],
        "weight": rng.choice([0.5, 1.0, 2.0], size=len(task)),
        "timestamp": rng.permutation(len(task)).astype(float),
    }


def rows_of(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


OPTIONS = {"abstain": "?", "weight": "weight", "timestamp": "timestamp", "duplicates": "last"}


def assert_same_labels(one, two):
    """Assert that two CrowdLabels hold the same annotations."""
    assert one.tasks.tolist() == two.tasks.tolist()
    assert one.workers.tolist() == two.workers.tolist()
    assert one.classes.tolist() == two.classes.tolist()
    for name in ("task", "worker", "label", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.columns.keys() == two.columns.keys()
    for name, values in one.columns.items():
        np.testing.assert_array_equal(values, two.columns[name])


def test_a_pack_holds_the_labels_of_its_files(tmp_path):
    write_table(tmp_path / "a.csv", crowd_columns())
    packed = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS, verify=True)
    assert len(packed.summary.shards) == 16
    assert "abstentions count as no label" in " ".join(packed.summary.notes)
    assert_same_labels(wc.read(packed.path), wc.read(tmp_path / "a.csv", **OPTIONS))
    assert sorted(entry.name for entry in packed.path.iterdir()) == [
        "pack.json", "shards", "worker_totals.npy", "workers.parquet",
    ]  # fmt: skip


def test_order_and_split_do_not_matter(tmp_path, monkeypatch):
    columns = crowd_columns()
    n = len(columns["task"])
    write_table(tmp_path / "all.csv", columns)
    digest = wc.pack(tmp_path / "all.csv", tmp_path / "all.pack", **OPTIONS).digest
    order = np.random.default_rng(2).permutation(n)
    for number, rows in enumerate(np.split(order, [10, 90])):
        write_table(tmp_path / f"part-{number}.parquet", rows_of(columns, rows))
    monkeypatch.setattr(pack_buckets, "ROWS", 17)
    monkeypatch.setattr(packing, "LEAST_BUCKETS", 64)  # other buckets, the same shards
    parts = wc.pack(tmp_path / "part-*.parquet", tmp_path / "parts.pack", **OPTIONS)
    assert parts.digest == digest
    monkeypatch.setattr(packing, "LEAST_BUCKETS", 2)
    assert wc.pack(tmp_path / "all.csv", tmp_path / "few.pack", **OPTIONS).digest == digest
    other = rows_of(columns, np.arange(n - 5))
    write_table(tmp_path / "less.csv", other)
    assert wc.pack(tmp_path / "less.csv", tmp_path / "less.pack", **OPTIONS).digest != digest


def test_the_number_of_shards_follows_from_the_rows(tmp_path):
    assert [shards_for(n) for n in (1, 2**28, 2**28 + 1, 10**9)] == [16, 16, 32, 64]
    write_table(tmp_path / "a.csv", crowd_columns())
    few = wc.pack(tmp_path / "a.csv", tmp_path / "few.pack", **OPTIONS, shards=1)
    assert_same_labels(wc.read(few.path), wc.read(tmp_path / "a.csv", **OPTIONS))
    with pytest.raises(ParameterError, match=r"power of two"):
        wc.pack(tmp_path / "a.csv", tmp_path / "b.pack", shards=12)


@pytest.mark.parametrize("policy", ["auto", "last", "keep"])
def test_repeated_labels_are_resolved_as_in_memory(policy, tmp_path, recwarn):
    columns = crowd_columns()
    del columns["timestamp"]
    write_table(tmp_path / "a.csv", columns)
    options = {"abstain": "?", "weight": "weight", "duplicates": policy}
    packed = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **options)
    assert_same_labels(wc.read(packed.path), wc.read(tmp_path / "a.csv", **options))


def test_repeated_labels_may_be_errors(tmp_path):
    columns = {"task": ["t", "t"], "worker": ["w", "w"], "label": ["a", "b"]}
    write_table(tmp_path / "a.csv", columns)
    with pytest.raises(DataError, match=r"Worker 'w' labelled task 't' twice"):
        wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", duplicates="error")
    many = {name: np.repeat([f"{name}{i}" for i in range(9)], 2) for name in ("task", "worker")}
    write_table(tmp_path / "b.csv", {**many, "label": np.tile(["a", "b"], 9)})
    with pytest.raises(DataError, match=r"9 of 9 \(task, worker\) pairs have different labels"):
        wc.pack(tmp_path / "b.csv", tmp_path / "b.pack")


IDS = ["a\nb", 'quo"te', " lead", "é", "x" * 30_000, "a", "A", "1", "01", "-1", "=1+1"]


@pytest.mark.filterwarnings("ignore:'A' and 'a' count:wisecrowd.core.exceptions.WisecrowdWarning")
@pytest.mark.filterwarnings("ignore:'01' and '1' count:wisecrowd.core.exceptions.WisecrowdWarning")
def test_odd_ids_survive(tmp_path):
    columns = {"task": np.repeat(IDS, 2), "worker": ["v\nw", "w"] * len(IDS), "label": IDS * 2}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    packed = wc.pack(tmp_path / "a.parquet", tmp_path / "a.pack", type="labels")
    assert "'A' and 'a' count as different classes" in " ".join(packed.summary.notes)
    labels = wc.read(packed.path)
    assert sorted(labels.tasks) == sorted(IDS)
    assert_same_labels(labels, wc.read(tmp_path / "a.parquet", type="labels"))


def test_one_and_its_text_differ(tmp_path):
    assert hash_ids(pa.array([1]))[0] != hash_ids(pa.array(["1"], pa.large_string()))[0]
    numbers, texts = {"task": [1, 2]}, {"task": ["1", "2"]}
    for name, ids in (("n", numbers), ("t", texts)):
        table = pa.table({**ids, "worker": ["v", "w"], "label": ["a", "b"]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    made = wc.pack(tmp_path / "n.parquet", tmp_path / "n.pack")
    assert wc.read(made.path).tasks.tolist() == [1, 2]
    with pytest.raises(DataError, match=r"task ids are integer in .*n.parquet and text in .*t.par"):
        wc.pack([tmp_path / "n.parquet", tmp_path / "t.parquet"], tmp_path / "both.pack")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"task": ["t", ""]}, r"task column of .*a.parquet is empty in row 2"),
        ({"task": ["t", " "]}, r"task id consists of white space"),
        ({"worker": [None, "w"]}, r"worker column of .* is empty in row 1"),
        ({"label": ["a", ""]}, r"label column of .* is empty in row 2"),
        ({"label": [0.5, 1.5]}, r"fractional numbers"),
        ({"task": [0.5, 1.0]}, r"task ids are fractions"),
        ({"task": [[1], [2]]}, r"lists or records"),
    ],
)
def test_unusable_rows_are_named(columns, message, tmp_path):
    table = {"task": ["s", "t"], "worker": ["v", "w"], "label": ["a", "b"], **columns}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        wc.pack(tmp_path / "a.parquet", tmp_path / "a.pack")


def test_some_rows_may_be_refused(tmp_path, monkeypatch):
    """Rows without ids or labels and with bad weights and times are left out and counted."""
    columns = crowd_columns()
    good = wc.pack(_written(tmp_path / "good.csv", columns), tmp_path / "good.pack", **OPTIONS)
    bad = {
        "task": ["", "t1", "t1", "t2", "t3", " "],
        "worker": ["w1", " ", "w1", "w2", "w3", "w1"],
        "label": ["a", "b", "", "a", "c", "a"],
        "weight": ["1", "1", "1", "heavy", "-1", "1"],
        "timestamp": ["1", "2", "3", "4", "5", "6"],
    }
    mixed = {name: np.append(columns[name].astype(object), bad[name]) for name in columns}
    order = np.random.default_rng(0).permutation(len(mixed["task"]))
    file = _written(tmp_path / "mixed.csv", {k: v[order].astype(str) for k, v in mixed.items()})
    monkeypatch.setattr(pack_buckets, "ROWS", 30)
    monkeypatch.setattr(pack_buckets, "read_batches", in_small_batches)
    with pytest.raises(DataError, match=r"empty in row"):
        wc.pack(file, tmp_path / "a.pack", **OPTIONS)
    with pytest.raises(DataError, match=r"rows cannot be read, more than max_refused=5 allows"):
        wc.pack(file, tmp_path / "a.pack", **OPTIONS, max_refused=5)
    made = wc.pack(file, tmp_path / "a.pack", **OPTIONS, max_refused=6)
    assert made.digest == good.digest
    first = 1 + min(np.flatnonzero(np.isin(order, len(columns["task"]) + np.array([0, 5]))))
    notes = "; ".join(made.summary.notes)
    assert f"2 rows without a task are left out (row {first} of" in notes
    assert "1 row without a worker is" in notes
    assert "2 rows with an unusable weight are" in notes
    with pytest.raises(ParameterError, match=r"max_refused is -1"):
        wc.pack(file, tmp_path / "b.pack", **OPTIONS, max_refused=-1)


def _written(path, columns):
    write_table(path, columns)
    return path


def test_one_task_with_all_labels_leaves_shards_empty(tmp_path):
    n = 3000
    table = {"task": ["t"] * n, "worker": [f"w{j}" for j in range(n)], "label": ["a", "b"] * 1500}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    packed = wc.pack(tmp_path / "a.parquet", tmp_path / "a.pack")
    assert sorted(shard.n_annotations for shard in packed.summary.shards) == [0] * 15 + [n]
    assert wc.read(packed.path).n_annotations == n
    assert packed.summary.labels_per_task == [n, n]


# ------------------------------------------------------------------------------------------ faults


def phases(monkeypatch):
    """Yield (name, function that interrupts packing in this phase)."""

    def after(calls, owner, name):
        original, seen = getattr(owner, name), []

        def interrupted(*given, **named):
            seen.append(1)
            if len(seen) > calls:
                raise KeyboardInterrupt
            return original(*given, **named)

        return lambda patch: patch.setattr(owner, name, interrupted)

    yield after(1, pack_buckets, "hash_ids")  # in the middle of the first file
    yield after(4, pack_buckets, "hash_ids")  # in the middle of the second file
    yield after(1, pack_buckets.Distributor, "add")  # between two files
    yield after(4, packing, "write_shard")  # between two shards
    yield after(9, packing, "write_array")  # before a shard is recorded
    yield after(0, packing, "write_ids")  # after the last shard
    yield after(0, packing, "summary_text")  # before the last rename


def in_small_batches(sources, format, request):
    """Read files in batches of 20 rows."""
    for file, size, batch in tables.read_batches(sources, format, request):
        columns = {name: pa.chunked_array(chunks) for name, chunks in batch.items()}
        n = len(columns["task"])
        for start in range(0, n, 20):
            part = {name: column.slice(start, 20) for name, column in columns.items()}
            chunks = {name: [column.combine_chunks()] for name, column in part.items()}
            yield file, size - n + min(start + 20, n), chunks


def test_a_killed_run_continues_to_the_same_digests(tmp_path, monkeypatch):
    columns = crowd_columns()
    for number, rows in enumerate(np.split(np.arange(len(columns["task"])), [80])):
        write_table(tmp_path / f"{number}.csv", rows_of(columns, rows))
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    options = {**OPTIONS, "duplicates": "keep"}  # a row that is read twice would count twice
    digest = wc.pack(files, tmp_path / "whole.pack", **options).digest
    monkeypatch.setattr(pack_buckets, "ROWS", 30)
    monkeypatch.setattr(pack_buckets, "read_batches", in_small_batches)
    for number, interrupt in enumerate(phases(monkeypatch)):
        target = tmp_path / f"{number}.pack"
        with monkeypatch.context() as patch:
            interrupt(patch)
            with pytest.raises(KeyboardInterrupt):
                wc.pack(files, target, **options)
        with pytest.raises(DataError, match=r"packing was not finished; run wisecrowd pack again"):
            wc.read(target)
        assert wc.pack(files, target, **options).digest == digest, number


def test_a_run_killed_after_its_pack_was_complete_is_finished_by_the_next(tmp_path, monkeypatch):
    write_table(tmp_path / "a.csv", crowd_columns())
    digest = wc.pack(tmp_path / "a.csv", tmp_path / "whole.pack", **OPTIONS).digest
    target = tmp_path / "a.pack"
    with monkeypatch.context() as patch:
        patch.setattr(packing, "remove_rest", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            wc.pack(tmp_path / "a.csv", target, **OPTIONS)
    assert (target / pack_progress.BUCKETS).exists()
    assert wc.pack(tmp_path / "a.csv", target, **OPTIONS).digest == digest
    assert sorted(entry.name for entry in target.iterdir()) == [
        "pack.json", "shards", "worker_totals.npy", "workers.parquet",
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"is a finished pack"):
        wc.pack(tmp_path / "a.csv", target, **OPTIONS)


def test_a_run_continues_after_its_last_finished_file(tmp_path, monkeypatch):
    for number in range(2):
        write_table(tmp_path / f"{number}.csv", crowd_columns(number))
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    read, original = [], pack_buckets.Distributor.add

    def counted(self, source):
        read.append(source.path.name)
        if len(read) == 2:
            raise KeyboardInterrupt
        original(self, source)

    monkeypatch.setattr(pack_buckets.Distributor, "add", counted)
    with pytest.raises(KeyboardInterrupt):
        wc.pack(files, tmp_path / "a.pack", **OPTIONS)
    wc.pack(files, tmp_path / "a.pack", **OPTIONS)
    assert read == ["0.csv", "1.csv", "1.csv"]


def test_other_options_start_from_the_beginning(tmp_path, monkeypatch):
    write_table(tmp_path / "a.csv", crowd_columns())
    with monkeypatch.context() as patch:
        patch.setattr(packing, "write_shard", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
    other = {**OPTIONS, "abstain": ()}
    assert wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **other).summary.classes[0] == "?"


def _interrupt(*given):
    raise KeyboardInterrupt


def test_a_damaged_progress_starts_from_the_beginning(tmp_path, monkeypatch):
    write_table(tmp_path / "a.csv", crowd_columns())
    digest = wc.pack(tmp_path / "a.csv", tmp_path / "whole.pack", **OPTIONS).digest
    with monkeypatch.context() as patch:
        patch.setattr(packing, "write_shard", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
    (tmp_path / "a.pack" / pack_progress.BUCKETS / "3.arrow").write_bytes(b"")
    assert wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS).digest == digest


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_truncated_file_is_named(share, tmp_path):
    write_table(tmp_path / "a.csv", crowd_columns())
    whole = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS, shards=1)
    for name in [*dict(whole.files()), "pack.json"]:
        copy = shutil.copytree(whole.path, tmp_path / "copy")
        with (copy / name).open("rb+") as file:
            file.truncate(int(share * ((copy / name).stat().st_size - 1)))
        with pytest.raises(DataError, match=rf"{name}.* (cut off|damaged)"):
            Pack(copy)
        shutil.rmtree(copy)


def test_a_folder_that_is_not_a_pack(tmp_path):
    (tmp_path / "a.pack").mkdir()
    assert not is_pack(tmp_path / "a.pack")
    with pytest.raises(DataError, match=r"has no pack.json"):
        Pack(tmp_path / "a.pack")
    write_table(tmp_path / "a.csv", crowd_columns())
    (tmp_path / "a.pack" / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match=r"is not an unfinished pack"):
        wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
    made = wc.pack(tmp_path / "a.csv", tmp_path / "b.pack", **OPTIONS)
    with pytest.raises(DataError, match=r"is a finished pack"):
        wc.pack(tmp_path / "a.csv", made.path, **OPTIONS)
    summary = json.loads((made.path / "pack.json").read_text())
    (made.path / "pack.json").write_text(json.dumps({**summary, "format": 99}))
    with pytest.raises(DataError, match=r"has format 99"):
        wc.read(made.path)


def test_a_full_disk_is_a_sentence_and_the_run_continues(tmp_path, monkeypatch):
    write_table(tmp_path / "a.csv", crowd_columns())

    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("wisecrowd.io.pack_shards.write_array", full)
        with pytest.raises(DataError, match=r"Cannot write .*a.pack: the disk is full"):
            wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(packing, "BYTES_PER_ROW", 10**18)
        with pytest.raises(DataError, match=r"Packing needs about .* of disk space"):
            wc.pack(tmp_path / "a.csv", tmp_path / "b.pack", **OPTIONS)
    made = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
    assert_same_labels(wc.read(made.path), wc.read(tmp_path / "a.csv", **OPTIONS))


# ------------------------------------------------------------------------------------------ options


def test_gold_and_declared_classes(tmp_path):
    write_table(tmp_path / "a.csv", crowd_columns())
    options = {**OPTIONS, "classes": ["c", "b", "a", "d"]}
    made = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **options, gold={"t3": "d"})
    assert made.summary.classes == ["c", "b", "a", "d"]
    assert made.summary.n_gold == 1
    for gold, message in (({"t3": "e"}, "the class 'e'"), ({"nobody": "a"}, "1 tasks of the gold")):
        with pytest.raises(DataError, match=message):
            wc.pack(tmp_path / "a.csv", tmp_path / "b.pack", **options, gold=gold)
    with pytest.raises(DataError, match=r"Label 'a' is not among the declared classes"):
        wc.pack(tmp_path / "a.csv", tmp_path / "c.pack", **{**OPTIONS, "classes": ["b", "c"]})


def test_a_pack_is_read_alone_and_without_options(tmp_path):
    write_table(tmp_path / "a.csv", crowd_columns())
    made = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
    with pytest.raises(ParameterError, match=r"task='id' is for files, and a pack is given"):
        wc.read(made.path, task="id")
    with pytest.raises(DataError, match=r"is a pack, which is read alone"):
        wc.read([made.path, tmp_path / "a.csv"])


def test_other_kinds_are_refused(tmp_path):
    write_table(tmp_path / "a.csv", {"task": ["1", "2"], "worker": ["v", "w"], "text": ["x", "y"]})
    with pytest.raises(DataError, match=r"texts, and a pack holds classes, numbers or pairs"):
        wc.pack(tmp_path / "a.csv", tmp_path / "a.pack")
    assert not (tmp_path / "a.pack").exists()


def test_a_refused_file_leaves_nothing_unless_it_can_be_continued(tmp_path):
    good, bad = crowd_columns(), {**crowd_columns(), "task": [""] * 163}
    write_table(tmp_path / "a.csv", good)
    write_table(tmp_path / "b.csv", bad)
    with pytest.raises(DataError, match=r"task column of .*b\.csv is empty"):
        wc.pack(tmp_path / "b.csv", tmp_path / "x.pack", **OPTIONS)
    assert not (tmp_path / "x.pack").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(DataError, match="is empty"):
        wc.pack(tmp_path / "b.csv", tmp_path / "mine", **OPTIONS)
    assert list((tmp_path / "mine").iterdir()) == []
    with pytest.raises(DataError, match="is empty"):
        wc.pack([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "x.pack", **OPTIONS)
    assert (tmp_path / "x.pack" / "progress.json").exists()
    with pytest.raises(ParameterError, match="belong to single tasks"):
        wc.pack(tmp_path / "a.csv", tmp_path / "y.pack", **OPTIONS, patterns="always")
    assert not (tmp_path / "y.pack").exists()


def test_exclude_workers(tmp_path):
    write_table(tmp_path / "a.csv", crowd_columns())
    made = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS, exclude_workers=["w1"])
    other = wc.read(tmp_path / "a.csv", **OPTIONS, exclude_workers=["w1"])
    packed = wc.read(made.path)
    assert packed.n_annotations == other.n_annotations
    assert packed.labels_per_task.sum() == other.labels_per_task.sum()


def test_a_swallowed_interrupt_still_stops_packing(tmp_path, monkeypatch):
    import os
    import signal

    write_table(tmp_path / "a.csv", crowd_columns())
    original = pack_buckets.hash_ids

    def swallowing(ids):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10**6):
                pass
        except KeyboardInterrupt:
            pass  # as a library may do
        return original(ids)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs
    monkeypatch.setattr(pack_buckets, "hash_ids", swallowing)
    try:
        with pytest.raises(KeyboardInterrupt):
            wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **OPTIONS)  # continues
