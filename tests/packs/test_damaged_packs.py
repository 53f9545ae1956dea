"""Damaged packs are refused by one sentence, in memory and by shards, also if digests fit."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.support import damaged_packs
from tests.support.damaged_packs import (
    ARRAYS,
    FILES,
    IDS,
    METHODS,
    copied,
    damage,
    damage_file,
    forge,
    write_pack,
    write_summary,
)

import wisecrowd as wc
from wisecrowd import fit_pack
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import get_method
from wisecrowd.io.packed_labels import gold_of_pack
from wisecrowd.packs.pack import Pack

SENTENCE = r"^[^\n]+ is damaged: [^\n]+; copy the pack again\.$"
DAMAGED = [
    ("classes", "workers", ["huge", "negative", "repeated", "short", "text", "empty"]),
    ("classes", "cell", ["huge", "negative", "far below", "reversed", "short", "long", "a row",
                         "a column", "text", "other numbers", "half as wide", "empty", "objects",
                         "records", "a scalar", "complex", "other bytes"]),
    ("classes", "indptr", ["huge", "negative", "reversed", "short", "a row", "text", "one more"]),
    ("classes", "weight", ["negative", "not a number", "infinite", "short", "text"]),
    ("classes", "gold", ["huge", "largest", "short", "text", "other numbers"]),
    ("patterns", "pattern", ["huge", "negative", "one more", "short", "text"]),
    ("patterns", "repeat", ["zero", "negative", "one more", "not a number", "short", "text"]),
    ("patterns", "cell", ["huge", "negative", "text"]),
    ("numbers", "value", ["not a number", "infinite", "short", "text", "a row"]),
    ("numbers", "gold", ["infinite", "short", "text"]),
    ("numbers", "cell", ["huge", "negative", "short", "text"]),
    ("numbers", "workers", ["huge", "negative", "repeated"]),
    ("pairs", "left", ["huge", "negative", "short", "text", "a row"]),
    ("pairs", "right", ["huge", "negative", "short", "text"]),
    ("pairs", "outcome", ["negative", "text", "short", "other numbers"]),
    ("pairs", "cell", ["huge", "negative", "text"]),
]  # fmt: skip
MEMORY_ONLY = [("classes", "timestamp", ["infinite", "short", "text", "a row"])]


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    return {name: write_pack(folder, name, 40) for name in METHODS}


def method_of(name):
    return get_method(METHODS[name][0])(max_iter=2)


def damaged_copy(packs, name, file, table, what, target, *, forged=True):
    pack = copied(packs[name], target)
    damage_file(pack / file, table, what, np.random.default_rng(0))
    if forged:
        forge(pack)
    return pack


def test_packs_without_damage_are_read_and_fitted(packs):
    for name, pack in packs.items():
        assert wc.read(pack).n_annotations == 120
        assert Pack(pack, verify=True).summary.n_annotations == 120
        fit_pack(method_of(name), pack)


@pytest.mark.parametrize(
    ("name", "array", "what"),
    [(name, array, what) for name, array, every in DAMAGED for what in every],
)
def test_a_forged_array_is_refused(name, array, what, packs, tmp_path):
    file = f"shards/0001/{array}.npy"
    pack = damaged_copy(packs, name, file, ARRAYS, what, tmp_path / "p")
    with pytest.raises(DataError, match=SENTENCE):
        wc.read(pack)
    with pytest.raises(DataError, match=SENTENCE):
        fit_pack(method_of(name), pack, tmp_path / "out")


@pytest.mark.parametrize("what", MEMORY_ONLY[0][2])
def test_forged_timestamps_are_refused_where_they_are_read(what, packs, tmp_path):
    pack = damaged_copy(packs, "classes", "shards/0000/timestamp.npy", ARRAYS, what, tmp_path / "p")
    with pytest.raises(DataError, match=SENTENCE):
        wc.read(pack)
    fit_pack(method_of("classes"), pack)


def test_items_that_are_compared_with_themselves_are_refused(packs, tmp_path):
    pack = copied(packs["pairs"], tmp_path / "p")
    shutil.copy(pack / "shards/0000/left.npy", pack / "shards/0000/right.npy")
    forge(pack)
    for fit in (wc.read, lambda path: fit_pack(method_of("pairs"), path)):
        with pytest.raises(DataError, match=r"right.npy .* an item is compared with itself"):
            fit(pack)


@pytest.mark.parametrize("what", IDS)
@pytest.mark.parametrize("file", ["workers.parquet", "shards/0000/tasks.parquet"])
def test_forged_ids_are_refused_or_ids(file, what, packs, tmp_path):
    pack = damaged_copy(packs, "numbers", file, IDS, what, tmp_path / "p")
    fine = {"renamed", "a NUL"} | ({"reversed"} if "tasks" in file else set())
    if what in fine:
        assert wc.read(pack).n_annotations == 120
        return
    with pytest.raises(DataError, match=SENTENCE):
        wc.read(pack)
    if what not in ("an id twice", "blank") or "workers" in file:  # tasks are compared in memory
        with pytest.raises(DataError, match=SENTENCE):
            fit_pack(method_of("numbers"), pack, tmp_path / "out")


def test_other_values_in_range_are_noticed_by_their_digest(packs, tmp_path):
    for name, array in (("classes", "cell"), ("numbers", "value"), ("pairs", "outcome")):
        pack = damaged_copy(
            packs, name, f"shards/0000/{array}.npy", ARRAYS, "zero", tmp_path / "p", forged=False
        )
        for fit in (wc.read, lambda path, name=name: fit_pack(method_of(name), path)):
            with pytest.raises(DataError, match=rf"{array}.npy .* is damaged: .*; copy the pack"):
                fit(pack)
    file = copied(packs["classes"], tmp_path / "p") / "shards/0001/gold.npy"
    np.save(file, np.where(np.load(file) >= 0, 1, -1).astype(np.int32))
    with pytest.raises(DataError, match=r"gold.npy .* does not have its SHA-256"):
        gold_of_pack(tmp_path / "p")


def test_the_pool_checks_shards_before_its_first_pass(packs, tmp_path):
    pack = damaged_copy(
        packs, "classes", "shards/0001/weight.npy", ARRAYS, "swapped", tmp_path / "p", forged=False
    )
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.raises(DataError, match=r"weight.npy .* does not have its SHA-256"),
    ):
        fit_pack(method_of("classes"), pack, executor=executor)


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("forged", [False, True])
def test_what_is_not_a_file_of_a_pack_is_refused(what, forged, packs, tmp_path):
    pack = damaged_copy(
        packs, "classes", "shards/0000/cell.npy", FILES, what, tmp_path / "p", forged=forged
    )
    with pytest.raises(DataError, match=SENTENCE):
        wc.read(pack)


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_random_damage_is_refused_or_harmless(name, forged, packs, tmp_path):
    whole, rng = wc.read(packs[name]), np.random.default_rng(17)
    for _ in range(25):
        pack = copied(packs[name], tmp_path / "p")
        done = damage(pack, rng)
        if forged:
            forge(pack)
        said, found = "", whole
        try:
            found = wc.read(pack)
        except DataError as error:
            said = str(error)
        assert not said or re.match(SENTENCE, said), (done, said)
        if not forged:
            np.testing.assert_array_equal(found.worker, whole.worker, str(done))
            np.testing.assert_array_equal(found.tasks, whole.tasks, str(done))


# ---------------------------------------------------------------------------------------- pack.json


def changed(packs, target, change, *, name="classes", forged):
    pack = copied(packs[name], target)
    values = json.loads((pack / "pack.json").read_text())
    change(values)
    if forged:
        write_summary(pack, values)
    else:
        (pack / "pack.json").write_text(json.dumps(values) + "\n")
    return pack


def put(**entries):
    return lambda values: values.update(entries)


def in_shard(**entries):
    return lambda values: values["shards"][1].update(entries)


@pytest.mark.parametrize(
    "change",
    [
        put(classes=["a", "c", "b"]),
        put(classes=["a", "b", "other"]),
        put(n_gold=0),
        put(notes=["read me"]),
        lambda values: values.pop("digest"),
        put(digest=None),
        put(digest=7),
    ],
)
def test_a_changed_summary_is_noticed(change, packs, tmp_path):
    pack = changed(packs, tmp_path / "p", change, forged=False)
    with pytest.raises(DataError, match=r"pack.json is damaged: it does not have its SHA-256;"):
        wc.read(pack)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (put(classes=None), "classes is None, not a list"),
        (put(classes=["a", "b"]), "class_totals has 3 entries instead of 2"),
        (put(classes=["a", "a", "b"]), "listed twice"),
        (put(classes=["a", "b", 3]), "not of one type"),
        (put(classes=["a", "b", ["c"]]), "not of one type"),
        (put(classes=["a", "b", "\ud800"]), "surrogates"),
        (put(classes=[1, 2, 2**70]), "is not a class"),
        (put(classes=[], class_totals=[]), "0 classes are listed"),
        (put(n_workers=10**12), "n_workers is 1000000000000, and worker_totals.npy holds others"),
        (put(n_workers=True), "n_workers is True"),
        (put(n_tasks=1.5), "n_tasks is 1.5"),
        (put(n_tasks=41), "do not hold all tasks"),
        (put(n_annotations=-1), "n_annotations is -1"),
        (put(labels_per_task=[1]), "labels_per_task has 1 entries instead of 2"),
        (put(labels_per_task=[1, None]), "labels_per_task has the entry None"),
        (put(ordered="no"), "ordered is no"),
        (put(task_type="float"), "task_type is float"),
        (put(notes=[1]), "a note is not text"),
        (put(options=[]), "is not a record"),
        (put(kind="boxes"), "is not a kind of packs"),
        (put(kind=["labels"]), "is not"),
        (put(extra=1), "'extra' is not one of a pack"),
        (lambda values: values.pop("shards"), "shards is None, not a list"),
        (lambda values: values.pop("n_tasks"), "it has no n_tasks"),
        (lambda values: values["shards"].pop(), "do not hold all annotations"),
        (put(files={"a\0b.npy": [1, ""]}), "is not the name of a file"),
        (put(files={"../a.npy": [1, ""]}), "is not the name of a file"),
        (put(files={"workers.parquet": 1}), "has no size and digest"),
        (put(files={}), "workers.parquet is not listed"),
        (in_shard(files=[]), "is not a record"),
        (in_shard(files={}), "has no tasks.parquet"),
        (in_shard(name="0000"), "is not the name of shard 1"),
        (in_shard(name="../0001"), "is not the name of shard 1"),
        (in_shard(n_rows=7), "has 7 rows of"),
        (in_shard(n_local_workers=None), "n_local_workers of shard 0001 is None"),
    ],
)
def test_a_forged_summary_is_refused(change, why, packs, tmp_path):
    pack = changed(packs, tmp_path / "p", change, forged=True)
    with pytest.raises(DataError, match=rf"^[^\n]*pack.json is damaged: [^\n]*{why}[^\n]*copy the"):
        Pack(pack)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"format":2,"hash":"fnv1a64-mixed","options":' + '{"a":' * 3000 + "1" + "}" * 3001 + "\n",
         "."),
        ("[]\n", "it is not a record"),
        ("7\n", "it is not a record"),
        ("", "Expecting value"),
        ('{"format": 2, "hash": "fnv1a64-mixed", "n_tasks": NaN, "digest": ""}\n', "JSON"),
    ],
)  # fmt: skip
def test_a_summary_that_is_no_summary_is_refused(text, why, packs, tmp_path):
    pack = copied(packs["classes"], tmp_path / "p")
    (pack / "pack.json").write_text(text)
    with pytest.raises(DataError, match=rf"pack.json is damaged: [^\n]*{why}[^\n]*; copy the pack"):
        Pack(pack)


def test_a_pack_of_the_former_format_is_read(packs, tmp_path):
    def as_before(values):
        values.update(format=1)
        values.pop("digest")

    for name in METHODS:
        pack = changed(packs, tmp_path / "p", as_before, name=name, forged=False)
        np.testing.assert_array_equal(wc.read(pack).worker, wc.read(packs[name]).worker)
        assert Pack(pack).digest == Pack(packs[name]).digest


def test_a_layout_of_its_own_does_not_matter(packs, tmp_path):
    pack = changed(packs, tmp_path / "p", lambda values: None, forged=False)
    assert wc.read(pack).n_annotations == 120


def test_every_array_is_opened_in_one_place():
    folder = damaged_packs.Path(wc.__file__).parent
    users = {
        path.stem
        for path in folder.rglob("*.py")
        if ".map_file(" in path.read_text(encoding="utf-8")
    }
    assert users == {"pack", "arrays"}
