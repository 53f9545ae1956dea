"""Fits to packs: the same bits by files and pool, those in memory up to rounding."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.support.faults import Fault, run_with

import wisecrowd as wc
from wisecrowd.aggregation import (
    BWA,
    MMSR,
    Auto,
    BeliefPropagation,
    CoupledNMF,
    DawidSkene,
    EigenRatio,
    HierarchicalDawidSkene,
    MultiSPA,
    SymmetricNMF,
)
from wisecrowd.core.exceptions import DataError, FindingWarning, ParameterError
from wisecrowd.core.registry import get_method
from wisecrowd.io.tables import write_table
from wisecrowd.kinds.classes.packed import patterns as merging
from wisecrowd.kinds.classes.packed.patterns import merged_rows
from wisecrowd.packs import files, pool
from wisecrowd.packs.files import Job, run_block
from wisecrowd.packs.fit import fit_pack, shardable_methods
from wisecrowd.packs.pack import Pack

N_SHARDS = 4


def table_of(folder):
    """Return the answers of all parts as arrays by name, sorted by task."""
    table = ds.dataset(folder).to_table().sort_by("task")
    return {name: table[name].to_numpy() for name in table.column_names}


def crowd_table(seed=0, n_tasks=60, n_workers=7, n_classes=3, per_task=4):
    """Return a long table of a crowd with good and bad workers, as columns."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.concatenate([rng.permutation(n_workers)[:per_task] for _ in range(n_tasks)])
    right = rng.random(len(task)) < np.linspace(0.4, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(n_classes, size=len(task)))
    return {
        "task": np.array([f"t{i:03d}" for i in task], dtype=object),
        "worker": np.array([f"w{j}" for j in worker], dtype=object),
        "label": np.array(list("abc"), dtype=object)[label],
    }


@pytest.fixture(scope="module")
def crowd_files(tmp_path_factory):
    """A folder with a pack, a pack with weights and gold, and their labels in memory."""
    folder = tmp_path_factory.mktemp("packs")
    table = crowd_table()
    write_table(folder / "plain.csv", table)
    wc.pack(folder / "plain.csv", folder / "plain.pack", shards=N_SHARDS)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=len(table["task"]))
    write_table(folder / "rich.csv", {**table, "weight": weight})
    gold = {"t000": "a", "t007": "b"}
    wc.pack(folder / "rich.csv", folder / "rich.pack", weight="weight", gold=gold, shards=N_SHARDS)
    return folder


def agrees(found, model, folder):
    """Assert that a fit to a pack is that of a method in memory."""
    table = table_of(folder)
    order = np.argsort(model.tasks_.astype(str))
    assert table["task"].tolist() == model.tasks_[order].tolist()
    assert table["label"].tolist() == model.labels_[order].tolist()
    np.testing.assert_allclose(table["confidence"], model.confidence_[order], atol=1e-9)
    assert table["tie"].tolist() == model.ties_[order].tolist()
    assert table["n_labels"].tolist() == model.labels_per_task_[order].tolist()
    np.testing.assert_allclose(found.fit.worker_accuracy, model.worker_accuracy_, atol=1e-9)
    np.testing.assert_allclose(
        found.fit.worker_accuracy_error, model.worker_accuracy_error_, atol=1e-9
    )
    assert found.n_ties == model.ties_.sum()


ANY_CLASSES = [name for name in shardable_methods() if not get_method(name).promises.binary]


@pytest.mark.parametrize("name", ANY_CLASSES)
def test_every_shardable_method_agrees_with_memory(name, crowd_files, tmp_path):
    method = get_method(name)()
    params = method.get_params()
    method.set_params(**{"n_init": 1} if "n_init" in params else {})
    found = fit_pack(method, crowd_files / "rich.pack", tmp_path / "answers")
    labels = wc.read(crowd_files / "rich.csv", weight="weight")
    assert not method.__sklearn_is_fitted__()
    agrees(found, method.fit(labels, gold={"t000": "a", "t007": "b"}), tmp_path / "answers")


def test_without_weights_and_gold(crowd_files, tmp_path):
    found = fit_pack(DawidSkene(), crowd_files / "plain.pack", tmp_path / "answers", soft=True)
    model = DawidSkene().fit(wc.read(crowd_files / "plain.pack"))
    agrees(found, model, tmp_path / "answers")
    np.testing.assert_allclose(found.fit.confusion, model.confusion_, atol=1e-9)
    np.testing.assert_allclose(found.fit.history, model.history_, rtol=1e-12)
    table = table_of(tmp_path / "answers")
    np.testing.assert_allclose(table["p_b"], model.probas_[:, 1], atol=1e-9)
    workers = found.worker_columns()
    assert workers["n_labels"].tolist() == model.labels_per_worker_.tolist()


SEVERAL = [
    DawidSkene(),
    HierarchicalDawidSkene(max_iter=4),
    Auto(candidates=["hierarchical-dawid-skene"]),
    BWA(max_iter=4),
    BeliefPropagation(max_iter=4),
]


@pytest.mark.parametrize("method", SEVERAL, ids=lambda method: type(method).__name__)
def test_blocks_and_executors_do_not_change_a_bit(method, crowd_files, tmp_path):
    pack = crowd_files / "plain.pack"
    here = fit_pack(method, pack, tmp_path / "files")
    with ThreadPoolExecutor(3) as executor:
        there = fit_pack(method, pack, tmp_path / "threads", executor=executor)
    assert there.fit.history == here.fit.history
    np.testing.assert_array_equal(there.fit.worker_accuracy, here.fit.worker_accuracy)
    answers, others = table_of(tmp_path / "files"), table_of(tmp_path / "threads")
    for name, values in answers.items():
        np.testing.assert_array_equal(values, others[name])


@pytest.mark.parametrize("block", [1, 2, 4])
def test_blocks_are_subtrees(block, crowd_files, tmp_path):
    opened = Pack(crowd_files / "plain.pack")
    job = Job(_Sum(), "local_step", 1.0)
    whole = run_block(opened, 0, N_SHARDS, job)
    one_by_one = [run_block(opened, number, 1, job)[0] for number in range(N_SHARDS)]
    assert whole[0] != sum(one_by_one)  # the order of additions matters here
    with ThreadPoolExecutor(1) as executor, pool.Pool(tmp_path, 1, executor, block) as run:
        assert run(opened, job) == whole


class _Sum(tuple):
    """A model whose statistics depend on the order of additions."""

    _fields = ()

    def __new__(cls):
        return super().__new__(cls)

    def begin(self, shard):
        return None

    def local_step(self, shard, state, params):
        return state, (params * [1.0, 1e16, -1e16, 1.0][shard.number],)


def test_processes_give_the_same_bits_and_are_replaced(crowd_files, tmp_path, monkeypatch):
    pack = crowd_files / "plain.pack"
    method = DawidSkene(max_iter=3)
    here = fit_pack(method, pack, tmp_path / "files")
    monkeypatch.setenv("WISECROWD_TEST_DIES", str(tmp_path / "died"))
    with monkeypatch.context() as patch:
        patch.setattr(pool, "run_task", dying_task)
        there = fit_pack(method, pack, tmp_path / "pool", engine="pool", processes=3)
    assert (tmp_path / "died").exists()
    with _Here() as executor:
        alone = fit_pack(method, pack, tmp_path / "alone", executor=executor)
    for found, folder in ((there, "pool"), (alone, "alone")):
        assert found.fit.history == here.fit.history
        np.testing.assert_array_equal(found.fit.confusion, here.fit.confusion)
        np.testing.assert_array_equal(found.fit.worker_accuracy, here.fit.worker_accuracy)
        for part in (tmp_path / "files").iterdir():
            assert part.read_bytes() == (tmp_path / folder / part.name).read_bytes()


class _Here(Executor):
    """An executor of one process: this one."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        future.set_result(function(*arguments, **options))
        return future


def test_the_executor_of_a_cluster_gives_the_same_bits(crowd_files, tmp_path):
    distributed = pytest.importorskip("distributed")
    pack, method = crowd_files / "plain.pack", DawidSkene(max_iter=3)
    here = fit_pack(method, pack, tmp_path / "files")
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as client:
        there = fit_pack(method, pack, tmp_path / "dask", executor=client.get_executor())
    assert there.fit.history == here.fit.history
    np.testing.assert_array_equal(there.fit.confusion, here.fit.confusion)
    for part in (tmp_path / "files").iterdir():
        assert part.read_bytes() == (tmp_path / "dask" / part.name).read_bytes()


def dying_task(*task):
    """Run a task in another process, but die in the middle of it the first time."""
    import os
    from pathlib import Path

    from wisecrowd.packs.pool import run_task

    mark = Path(os.environ["WISECROWD_TEST_DIES"])
    if task[2] == 3 and not mark.exists():
        mark.touch()
        os._exit(1)
    return run_task(*task)


class _Breaking(ThreadPoolExecutor):
    """An executor that breaks on every task, as if its processes died."""

    def submit(self, *task):
        from concurrent.futures.process import BrokenProcessPool

        future = Future()
        future.set_exception(BrokenProcessPool("died"))
        return future


def test_three_deaths_name_the_shard(crowd_files, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "ProcessPoolExecutor", lambda *a, **k: _Breaking(1))
    with pytest.raises(DataError, match=r"died 3 times on shard 0000 .* labels, .* fewer proc"):
        fit_pack(DawidSkene(), crowd_files / "plain.pack", tmp_path / "a", engine="pool")
    assert not (tmp_path / "a").exists()
    with pytest.raises(DataError, match="executor broke"):
        fit_pack(DawidSkene(), crowd_files / "plain.pack", executor=_Breaking(1))


@pytest.mark.parametrize(
    ("name", "n_passes"),
    [
        ("dawid-skene", 0),
        ("dawid-skene", 3),
        ("glad", 2),
        ("hierarchical-dawid-skene", 2),
        ("belief-propagation", 3),
    ],
)
def test_an_interrupted_fit_resumes(name, n_passes, crowd_files, tmp_path, monkeypatch):
    pack, output = crowd_files / "plain.pack", tmp_path / "answers"
    method = get_method(name)(max_iter=6)
    whole = fit_pack(method, pack, tmp_path / "whole")
    calls = []

    def interrupted(pack, number, job):
        calls.append(number)
        if len(calls) > N_SHARDS * n_passes + 2:
            raise KeyboardInterrupt
        return original(pack, number, job)

    original = files.run_shard
    with monkeypatch.context() as patch:
        patch.setattr(files, "run_shard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_pack(method, pack, output)
    assert not output.exists()
    found = fit_pack(method, pack, output, resume=True)
    assert found.n_resumed == n_passes
    assert found.fit.history == whole.fit.history
    np.testing.assert_array_equal(found.fit.worker_accuracy, whole.fit.worker_accuracy)
    assert not (tmp_path / "answers.scratch").exists()
    answers, others = table_of(output), table_of(tmp_path / "whole")
    np.testing.assert_array_equal(answers["confidence"], others["confidence"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults need fork")
@pytest.mark.parametrize("output", ["answers", "answers.csv"])
def test_a_killed_fit_leaves_nothing_after_the_next_one(crowd_files, tmp_path, output):
    pack = crowd_files / "plain.pack"
    command = ["aggregate", pack, "-o", output, "-m", "majority-vote", "--engine", "files", "-q"]
    command = [*map(str, command), "--workers-to", "w.csv"]
    (tmp_path / "whole").mkdir()
    whole = run_with(None, command, tmp_path / "whole")
    assert whole.code == 0, whole.err
    names = {entry.name for entry in (tmp_path / "whole").iterdir()}
    left = 0
    for at in range(whole.steps - 22, whole.steps, 3):
        work = tmp_path / f"killed-{at}"
        work.mkdir()
        assert run_with(Fault("kill", at), command, work).code == -signal.SIGKILL
        left += sum(entry.name.endswith(".tmp") for entry in work.iterdir())
        again = run_with(None, [*command, "--resume"], work)
        assert again.code == 0, again.err
        assert {entry.name for entry in work.iterdir()} == names
    assert left > 0


def test_a_folder_of_progress_that_is_not_ours_is_refused(crowd_files, tmp_path):
    pack, scratch = crowd_files / "plain.pack", tmp_path / "answers.scratch"
    for name in ("passes/thesis.txt", "passes/pass-00001", "job-7", "output", "unfinished"):
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text("mine")
        with pytest.raises(DataError, match="was not made by wisecrowd"):
            fit_pack(DawidSkene(max_iter=1), pack, tmp_path / "answers")
        assert (scratch / name).read_text() == "mine"
        shutil.rmtree(scratch)


def test_the_scratch_folder_may_hold_anything(crowd_files, tmp_path):
    pack, scratch = crowd_files / "plain.pack", tmp_path / "d"
    names = ("table/thesis.txt", "passes/thesis.txt", "output", "job-7")
    for name in names:
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text("mine")
    for resume in (False, True):
        fit_pack(DawidSkene(max_iter=1), pack, tmp_path / "a", scratch=scratch, resume=resume)
    assert [(scratch / name).read_text() for name in names] == ["mine"] * 4
    assert len(list(scratch.iterdir())) == 4


def test_a_foreign_file_in_our_own_folder_of_progress_is_refused(crowd_files, tmp_path):
    pack, scratch = crowd_files / "plain.pack", tmp_path / "answers.scratch"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.PackShards, "collect", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit_pack(DawidSkene(max_iter=1), pack, tmp_path / "answers")
    (scratch / "passes" / "thesis.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(DataError, match=r"holds passes.thesis.txt, which wisecrowd did not"):
            fit_pack(DawidSkene(max_iter=1), pack, tmp_path / "answers", resume=resume)
    assert (scratch / "passes" / "thesis.txt").read_text() == "mine"
    (scratch / "passes" / "thesis.txt").unlink()
    assert fit_pack(DawidSkene(max_iter=1), pack, tmp_path / "answers", resume=True).n_resumed
    assert [entry.name for entry in tmp_path.iterdir()] == ["answers"]


def test_a_refused_output_leaves_no_folder(crowd_files, tmp_path):
    (tmp_path / "answers").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "answers" / "part-00000.parquet")
    with pytest.raises(DataError, match=r"holds part-00000\.parquet, which would be lost"):
        fit_pack(DawidSkene(max_iter=1), crowd_files / "plain.pack", tmp_path / "answers")
    assert [entry.name for entry in tmp_path.iterdir()] == ["answers"]


def test_resuming_another_fit_is_refused(crowd_files, tmp_path, monkeypatch):
    pack, output = crowd_files / "plain.pack", tmp_path / "answers"
    with monkeypatch.context() as patch:
        patch.setattr(files.PackShards, "collect", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit_pack(DawidSkene(), pack, output)
    with pytest.raises(DataError, match="belongs to another fit"):
        fit_pack(DawidSkene(prior=None), pack, output, resume=True)
    assert fit_pack(DawidSkene(prior=None), pack, output).n_resumed == 0


def _interrupt(*arguments):
    raise KeyboardInterrupt


def test_other_methods_name_those_that_can(crowd_files):
    with pytest.raises(ParameterError, match=r"ebcc needs all labels .* dawid-skene"):
        fit_pack(get_method("ebcc")(), crowd_files / "plain.pack")


def test_damaged_indices_never_reach_compiled_code(crowd_files, tmp_path):
    from wisecrowd.packs.pack import load_shard

    pack = Pack(shutil.copytree(crowd_files / "plain.pack", tmp_path / "copy"))
    number = max(range(N_SHARDS), key=lambda n: pack.summary.shards[n].n_annotations)
    file = pack.path / "shards" / f"{number:04d}" / "cell.npy"
    cell = np.load(file)
    cell[-1] = 10**6
    np.save(file, cell)
    with pytest.raises(DataError, match=rf"shards/{number:04d}/cell.npy .* is damaged"):
        load_shard(pack, number)
    with pytest.raises(DataError, match=r"does not have its SHA-256"):
        Pack(pack.path, verify=True)


def test_a_sample_is_a_part_of_the_labels(crowd_files):
    from wisecrowd.kinds.classes.packed.crowd import PackedCrowd
    from wisecrowd.packs.answers import AnswerParts, PartPlan

    crowd = PackedCrowd(Pack(crowd_files / "rich.pack"), AnswerParts(PartPlan()))
    some, every = crowd.sample(50), crowd.sample(10**6)
    assert 50 <= some.n_annotations < 60
    assert every.n_annotations == crowd.n_annotations
    assert every.weight is not None
    whole = wc.read(crowd_files / "rich.pack")
    assert every.labels_per_worker.tolist() == whole.labels_per_worker.tolist()
    assert replace(every, weight=None).class_totals.sum() == whole.n_annotations


# --------------------------------------------------------------------------------------- patterns


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    """Three judges who label everything: packs with and without patterns."""
    folder = tmp_path_factory.mktemp("judges")
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=1500)
    right = rng.random((1500, 3)) < [0.9, 0.8, 0.6]
    label = np.where(right, truth[:, None], rng.integers(3, size=(1500, 3))).ravel()
    table = {
        "task": np.repeat(np.arange(1500), 3),
        "worker": np.tile(["gpt", "judge", "llm"], 1500).astype(object),
        "label": np.array(list("abc"), dtype=object)[label],
    }
    write_table(folder / "all.parquet", table)
    wc.pack(folder / "all.parquet", folder / "rows.pack", shards=2, patterns="always")
    wc.pack(folder / "all.parquet", folder / "tasks.pack", shards=2, patterns="never")
    return folder


PATTERNED = [name for name in ANY_CLASSES if get_method(name).promises.repeatable]


@pytest.mark.parametrize("name", PATTERNED)
def test_rows_of_equal_tasks_are_exact(name, judges, tmp_path):
    method = get_method(name)()
    changed = {"n_init": 1, "max_iter": 12}
    method.set_params(**{k: v for k, v in changed.items() if k in method.get_params()})
    rows = fit_pack(method, judges / "rows.pack", tmp_path / "rows")
    tasks = fit_pack(method, judges / "tasks.pack", tmp_path / "tasks")
    merged = merged_rows(rows.pack)
    assert merged.n_tasks == 27  # of all shards together
    assert merged.repeat.sum() == rows.pack.summary.n_tasks
    np.testing.assert_allclose(rows.fit.history, tasks.fit.history, rtol=1e-12)
    np.testing.assert_allclose(rows.fit.worker_accuracy, tasks.fit.worker_accuracy, rtol=1e-11)
    np.testing.assert_allclose(
        rows.fit.worker_accuracy_error, tasks.fit.worker_accuracy_error, rtol=1e-9
    )
    assert rows.n_ties == tasks.n_ties
    one, other = table_of(tmp_path / "rows"), table_of(tmp_path / "tasks")
    assert one["task"].tolist() == other["task"].tolist()
    assert one["label"].tolist() == other["label"].tolist()
    np.testing.assert_allclose(one["confidence"], other["confidence"], rtol=1e-11)


def test_patterns_are_found_automatically(judges, tmp_path):
    packed = wc.pack(judges / "all.parquet", tmp_path / "auto.pack", shards=1)
    assert packed.summary.patterns
    assert packed.summary.shards[0].n_rows == 27
    labels, plain = wc.read(packed.path), wc.read(judges / "all.parquet")
    np.testing.assert_array_equal(labels.label, plain.label)
    np.testing.assert_array_equal(labels.worker, plain.worker)


def test_rows_of_all_shards_have_the_same_bits_in_an_executor(judges, tmp_path):
    here = fit_pack(DawidSkene(), judges / "rows.pack", tmp_path / "here")
    with ThreadPoolExecutor(2) as executor:
        there = fit_pack(DawidSkene(), judges / "rows.pack", tmp_path / "there", executor=executor)
    assert there.fit.history == here.fit.history
    np.testing.assert_array_equal(there.fit.confusion, here.fit.confusion)
    assert (tmp_path / "here" / "part-00001.parquet").read_bytes() == (
        tmp_path / "there" / "part-00001.parquet"
    ).read_bytes()


def test_too_many_rows_stay_in_their_shards(judges, monkeypatch):
    few = fit_pack(DawidSkene(), judges / "rows.pack")
    monkeypatch.setattr(merging, "MOST_CELLS", 10)
    assert merged_rows(Pack(judges / "rows.pack")) is None
    many = fit_pack(DawidSkene(), judges / "rows.pack")
    assert few.n_ties == many.n_ties
    np.testing.assert_allclose(few.fit.history, many.fit.history, rtol=1e-12)


def test_weights_do_not_share_rows(crowd_files, tmp_path):
    with pytest.raises(ParameterError, match="belong to single tasks"):
        wc.pack(crowd_files / "rich.csv", tmp_path / "x.pack", weight="weight", patterns="always")


def test_glad_needs_single_tasks(judges):
    with pytest.raises(ParameterError, match=r"glad .* --patterns never|patterns='never'"):
        fit_pack(get_method("glad")(), judges / "rows.pack")


# ------------------------------------------------------------------------------------------- auto


def test_auto_reports_its_choice_and_pools_as_in_memory(crowd_files, tmp_path):
    found = fit_pack(Auto(), crowd_files / "plain.pack", tmp_path / "answers", soft=True)
    model = Auto().fit(wc.read(crowd_files / "plain.pack"))
    agrees(found, model, tmp_path / "answers")
    extra = found.fit.extra
    assert (extra["chosen"], extra["n_sample"]) == (model.chosen_, 60)
    assert extra["agreement"] == pytest.approx(model.agreement_)
    assert extra["overruled"] == pytest.approx(model.overruled_)
    assert {f.id for f in found.fit.findings} <= {f.id for f in model.findings_}
    table = table_of(tmp_path / "answers")
    order = np.argsort(model.tasks_.astype(str))
    np.testing.assert_allclose(table["p_b"], model.probas_[order, 1], atol=1e-9)


@pytest.mark.parametrize("n_passes", [3, 12])  # in the chosen method, and in the votes after it
def test_an_interrupted_auto_resumes(n_passes, crowd_files, tmp_path, monkeypatch):
    pack, method = crowd_files / "plain.pack", Auto(candidates=["hierarchical-dawid-skene"])
    fit_pack(method, pack, tmp_path / "whole")
    calls = []

    def interrupted(pack, number, job):
        calls.append(number)
        if len(calls) > N_SHARDS * n_passes + 2:
            raise KeyboardInterrupt
        return original(pack, number, job)

    original = files.run_shard
    with monkeypatch.context() as patch:
        patch.setattr(files, "run_shard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_pack(method, pack, tmp_path / "answers")
    assert fit_pack(method, pack, tmp_path / "answers", resume=True).n_resumed > 1
    one, other = table_of(tmp_path / "answers"), table_of(tmp_path / "whole")
    np.testing.assert_array_equal(one["confidence"], other["confidence"])


def test_auto_chooses_among_methods_that_fit_packs(crowd_files):
    pack = crowd_files / "plain.pack"
    found = fit_pack(Auto(candidates=["ebcc", "one-coin"]), pack)
    assert found.fit.extra["chosen"] == "one-coin"
    with pytest.raises(ParameterError, match=r"ebcc, which need all labels .* give hier"):
        fit_pack(Auto(candidates=["ebcc"]), pack)
    with pytest.raises(ParameterError, match="class_prior of auto"):
        fit_pack(Auto(class_prior="uniform"), pack)


def test_auto_pools_sparse_posteriors(crowd_files, tmp_path, monkeypatch):
    from wisecrowd.packs import fit as pack_fit

    monkeypatch.setattr(pack_fit, "DENSE_LIMIT", 10)
    found = fit_pack(Auto(), crowd_files / "plain.pack", tmp_path / "answers")
    assert list(found.fit.extra["agreement"]) == ["one-coin", "wawa"]
    table = table_of(tmp_path / "answers")
    assert ((table["confidence"] > 0.3) & (table["confidence"] <= 1)).all()


def test_auto_scales_gold_by_a_temperature(tmp_path):
    table = crowd_table(n_tasks=80)
    write_table(tmp_path / "gold.csv", table)
    gold = {f"t{i:03d}": "abc"[i % 3] for i in range(0, 80, 2)}  # unrelated to the labels
    wc.pack(tmp_path / "gold.csv", tmp_path / "gold.pack", gold=gold, shards=4)
    method = Auto(candidates=["one-coin"])
    found = fit_pack(method, tmp_path / "gold.pack", tmp_path / "answers")
    assert found.fit.extra["temperature"] > 1.5
    answers = table_of(tmp_path / "answers")
    known = np.isin(answers["task"], list(gold))
    assert (answers["confidence"][known] == 1).all()
    assert answers["confidence"][~known].max() < 0.99


# ----------------------------------------------------------------------------- belief propagation


@pytest.mark.parametrize("prior", [wc.priors.OneCoinPrior(), wc.priors.DirichletRows()])
def test_messages_are_files_of_the_last_passes(prior, crowd_files, tmp_path, monkeypatch):
    method = BeliefPropagation(prior=prior, max_iter=6, n_nodes=32)
    most = []

    def counting(pack, number, job):
        most.append(len({f.name[:11] for f in (tmp_path / "a.scratch/passes").glob("state-*")}))
        return original(pack, number, job)

    original = files.run_shard
    monkeypatch.setattr(files, "run_shard", counting)
    found = fit_pack(method, crowd_files / "rich.pack", tmp_path / "a")
    assert max(most) <= 3  # the previous one, that before it, and the one in the making
    model = method.fit(wc.read(crowd_files / "rich.pack"), gold={"t000": "a", "t007": "b"})
    agrees(found, model, tmp_path / "a")


def test_belief_propagation_refuses_what_needs_memory(crowd_files, tmp_path):
    with pytest.raises(ParameterError, match=r"fit_prior=True needs all labels"):
        fit_pack(BeliefPropagation(fit_prior=True), crowd_files / "plain.pack")
    table = crowd_table()
    write_table(tmp_path / "heavy.csv", {**table, "weight": np.full(len(table["task"]), 501.0)})
    wc.pack(tmp_path / "heavy.csv", tmp_path / "heavy.pack", weight="weight", shards=4)
    with pytest.raises(DataError, match="240 of the weights are more"):
        fit_pack(BeliefPropagation(), tmp_path / "heavy.pack")


# ---------------------------------------------------------------------------------------- moments


PAIR_METHODS = [MultiSPA(), CoupledNMF(max_iter=20), SymmetricNMF(max_iter=20), MMSR(max_iter=20)]


@pytest.mark.parametrize("method", PAIR_METHODS, ids=lambda method: type(method).__name__)
def test_pair_tables_are_sums_over_shards(method, tmp_path):
    table = crowd_table(n_tasks=300)
    table["label"][5] = "rare"  # a class on which nobody agreed is left to the vote
    write_table(tmp_path / "crowd.csv", table)
    gold = {f"t{i:03d}": "abc"[i % 3] for i in range(9)}
    wc.pack(tmp_path / "crowd.csv", tmp_path / "crowd.pack", gold=gold, shards=4)
    found = fit_pack(method, tmp_path / "crowd.pack", tmp_path / "answers")
    with ThreadPoolExecutor(2) as executor:
        there = fit_pack(method, tmp_path / "crowd.pack", executor=executor)
    np.testing.assert_array_equal(there.fit.worker_accuracy, found.fit.worker_accuracy)
    model = method.fit(wc.read(tmp_path / "crowd.csv"), gold=gold)
    agrees(found, model, tmp_path / "answers")
    for name, values in found.fit.extra.items():
        np.testing.assert_allclose(values, getattr(model, f"{name}_"), atol=1e-9)


def test_methods_for_two_classes(crowd_files, tmp_path):
    with pytest.raises(DataError, match="EigenRatio handles two classes and there are 3"):
        fit_pack(EigenRatio(), crowd_files / "plain.pack")
    table = crowd_table()
    table["label"][table["label"] == "c"] = "b"
    write_table(tmp_path / "two.csv", table)
    gold = {"t000": "a", "t007": "b"}
    wc.pack(tmp_path / "two.csv", tmp_path / "two.pack", gold=gold, shards=4)
    found = fit_pack(EigenRatio(max_iter=20), tmp_path / "two.pack", tmp_path / "answers")
    model = EigenRatio(max_iter=20).fit(wc.read(tmp_path / "two.csv"), gold=gold)
    agrees(found, model, tmp_path / "answers")
    with pytest.raises(ParameterError, match=r"ghosh-svd.* needs all labels in memory"):
        fit_pack(EigenRatio(variant="ghosh-svd"), tmp_path / "two.pack")


def test_fewer_pairs_are_chosen_as_in_memory(crowd_files, tmp_path):
    method = MultiSPA(max_pairs=12, min_shared=1)
    with pytest.warns(FindingWarning, match="12 of them are used"):
        found = fit_pack(method, crowd_files / "plain.pack", tmp_path / "answers")
    with pytest.warns(FindingWarning, match="12 of them are used"):
        model = method.fit(wc.read(crowd_files / "plain.pack"))
    agrees(found, model, tmp_path / "answers")


def test_too_many_pairs_are_refused(crowd_files, monkeypatch):
    from wisecrowd.kinds.classes.packed import moments

    monkeypatch.setattr(moments, "MOST_PAIRS", 10)
    with pytest.raises(DataError, match="More than 10 pairs of workers share tasks"):
        fit_pack(MultiSPA(), crowd_files / "plain.pack")
