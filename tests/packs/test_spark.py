"""Fits to packs by Spark: the bits of the files engine, also after a worker was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.dataset as ds
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import DataError, MissingDependencyError, ParameterError
from wisecrowd.core.registry import get_method
from wisecrowd.io.tables import write_table
from wisecrowd.packs import spark as spark_engine
from wisecrowd.packs import spark_step
from wisecrowd.packs.fit import fit_pack
from wisecrowd.storage.work_folder import MARK

N_SHARDS = 8
# A daemon for Python workers: a worker that meets a file of this name waits there to be killed.
DAEMON = """
import os, sys, time
from pathlib import Path
from wisecrowd.packs import files
import pyspark.daemon

original, trap = files.run_shard, Path(os.environ["WISECROWD_TEST_TRAP"])

def run_shard(pack, number, job):
    if number == 3 and trap.exists():
        trap.unlink()
        trap.with_name("caught").write_text(str(os.getpid()))
        time.sleep(60)
    return original(pack, number, job)

files.run_shard = run_shard
if __name__ == "__main__":
    pyspark.daemon.manager()
"""


def table_of(folder):
    table = ds.dataset(folder).to_table().sort_by("task")
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def pack(folder):
    """A pack of 8 shards; statistics of its 1200 workers are larger than what travels inline."""
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(1500), 4), rng.integers(1200, size=6000)
    truth = rng.integers(6, size=1500)[task]
    right = rng.random(6000) < 0.7
    label = np.where(right, truth, rng.integers(6, size=6000))
    table = {"task": task, "worker": worker, "label": np.array(list("abcdef"), object)[label]}
    write_table(folder / "crowd.parquet", table)
    return wc.pack(folder / "crowd.parquet", folder / "crowd.pack", shards=N_SHARDS)


@pytest.fixture(scope="module")
def session(folder):
    """The one session of the tests, with two cores and four attempts at every task."""
    pytest.importorskip("pyspark")
    try:
        spark_engine.check_java()
    except DataError as error:
        pytest.skip(str(error))
    (folder / "trapped_daemon.py").write_text(DAEMON)
    source = str(Path(wc.__file__).parents[1])
    paths = [str(folder), source, os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("WISECROWD_TEST_TRAP", str(folder / "trap"))
        with spark_engine.without_pandas_warning():
            from pyspark.sql import SparkSession

            made = (
                SparkSession.builder.master("local[2,4]")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.python.daemon.module", "trapped_daemon")
                .getOrCreate()
            )
        made.sparkContext.setLogLevel("OFF")
        yield made
        made.stop()


@pytest.fixture
def engine(session, pack):
    return wc.engines.spark(session, pack.path)


def equal(found, other, answers, others):
    """Assert that two fits have the same bits."""
    assert found.fit.history == other.fit.history
    np.testing.assert_array_equal(found.fit.worker_accuracy, other.fit.worker_accuracy)
    assert found.n_ties == other.n_ties
    one, two = table_of(answers), table_of(others)
    assert one.keys() == two.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])


@pytest.mark.spark
@pytest.mark.parametrize("name", ["majority-vote", "dawid-skene", "glad"])
def test_spark_and_files_have_the_same_bits(name, engine, pack, tmp_path):
    method = get_method(name)()
    method.set_params(**({"max_iter": 3} if "max_iter" in method.get_params() else {}))
    here = fit_pack(method, pack, tmp_path / "files", soft=True)
    there = fit_pack(method, pack, tmp_path / "spark", soft=True, engine=engine)
    equal(there, here, tmp_path / "spark", tmp_path / "files")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["files", "spark"]
    if name == "dawid-skene":
        np.testing.assert_array_equal(there.fit.confusion, here.fit.confusion)
        size = there.fit.confusion.nbytes
        assert size > spark_step.INLINE  # statistics were files


@pytest.mark.spark
@pytest.mark.parametrize("tasks", [1, 7, 100])
def test_blocks_do_not_change_a_bit(tasks, session, pack, tmp_path):
    engine = wc.engines.spark(session, pack, tmp_path / "scratch", tasks=tasks)
    assert engine._n_tasks == {1: 1, 7: 4, 100: 8}[tasks]
    here = fit_pack(MajorityVote(), pack, tmp_path / "files")
    there = fit_pack(MajorityVote(), pack, tmp_path / "spark", engine=engine)
    equal(there, here, tmp_path / "spark", tmp_path / "files")
    assert not (tmp_path / "scratch").exists()


@pytest.mark.spark
def test_aggregate_returns_a_spark_frame(engine, pack, tmp_path):
    found = wc.aggregate(engine, method="dawid-skene", max_iter=2)
    assert found.columns == ["task", "label", "confidence"]
    fit_pack(DawidSkene(max_iter=2), pack, tmp_path / "files")
    rows = {row.task: (row.label, row.confidence) for row in found.collect()}
    table = table_of(tmp_path / "files")
    columns = (table["task"].tolist(), table["label"], table["confidence"])
    assert rows == {t: (k, c) for t, k, c in zip(*columns, strict=True)}


@pytest.mark.spark
def test_a_killed_worker_changes_nothing(engine, pack, folder, tmp_path):
    method = DawidSkene(max_iter=3)
    here = fit_pack(method, pack, tmp_path / "files")
    killed, caught = [], folder / "caught"

    def kill():
        while not (caught.exists() and caught.read_text()):
            time.sleep(0.02)
        killed.append(int(caught.read_text()))
        os.kill(killed[0], signal.SIGKILL)

    (folder / "trap").touch()
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    there = fit_pack(method, pack, tmp_path / "spark", engine=engine)
    killer.join(1)
    assert killed
    assert not Path(f"/proc/{killed[0]}").exists()
    equal(there, here, tmp_path / "spark", tmp_path / "files")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["files", "spark"]


@pytest.mark.spark
def test_another_version_is_refused(engine, pack, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_engine, "__version__", "0.0.1")
    message = rf"driver has wisecrowd 0.0.1, and a worker of Spark has {wc.__version__}; install"
    with pytest.raises(DataError, match=message):
        fit_pack(MajorityVote(), pack, tmp_path / "spark", engine=engine)
    assert not (tmp_path / "spark").exists()


@pytest.mark.spark
def test_an_interrupted_fit_resumes(engine, pack, tmp_path, monkeypatch):
    method, calls = DawidSkene(max_iter=3), []
    here = fit_pack(method, pack, tmp_path / "files")
    original = spark_engine._SparkRunner._rows

    def interrupted(runner, task):
        calls.append(task)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(runner, task)

    with monkeypatch.context() as patch:
        patch.setattr(spark_engine._SparkRunner, "_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_pack(method, pack, tmp_path / "spark", engine=engine)
    kept = {path.name for path in (tmp_path / "spark.scratch").iterdir()}
    assert kept == {MARK, "passes"}
    there = fit_pack(method, pack, tmp_path / "spark", engine=engine, resume=True)
    assert there.n_resumed == 2
    equal(there, here, tmp_path / "spark", tmp_path / "files")


@pytest.mark.spark
def test_a_job_that_fails_four_times_is_one_sentence(session, pack, monkeypatch):
    engine = wc.engines.spark(session, pack, tasks=1)
    monkeypatch.setattr(spark_engine, "run_rows", _no_memory)
    with pytest.raises(DataError, match=r"gave up a pass \(MemoryError: too large\); .* resume"):
        fit_pack(MajorityVote(), pack, engine=engine)


def _no_memory(task, batches):
    raise MemoryError("too large")


@pytest.mark.spark
def test_spark_submit_runs_the_script(session, pack, tmp_path):
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    script = subprocess.run(
        [sys.executable, "-m", "wisecrowd", "spark-script"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    command = [submit, "--master", "local[2,4]", "--conf", "spark.driver.bindAddress=127.0.0.1",
               "--conf", "spark.ui.enabled=false", script.stdout.strip(), "aggregate", pack.path,
               "-m", "majority-vote", "-o", f"{tmp_path / 'labels'}/"]  # fmt: skip
    environment = {**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "majority-vote: 1500 tasks" in done.stdout  # spark-submit sends both streams there
    fit_pack(MajorityVote(), pack, tmp_path / "files")
    one, two = table_of(tmp_path / "labels"), table_of(tmp_path / "files")
    np.testing.assert_array_equal(one["confidence"], two["confidence"])
    assert (tmp_path / "labels.manifest.json").exists()


CONNECT = """
import sys
import wisecrowd as wc
from wisecrowd.packs.spark import without_pandas_warning
with without_pandas_warning():
    from pyspark.sql import SparkSession
    session = SparkSession.builder.remote("local[2,4]").getOrCreate()
engine = wc.engines.spark(session, sys.argv[1], sys.argv[2], tasks=2)
found = wc.aggregate(engine, "majority-vote")
print(type(session).__module__, found.count(), found.columns)
session.stop()
"""


@pytest.mark.spark
def test_spark_connect(session, pack, tmp_path):
    pytest.importorskip("grpc")
    (tmp_path / "connect.py").write_text(CONNECT)
    command = [sys.executable, tmp_path / "connect.py", pack.path, tmp_path / "scratch"]
    names = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_LOCAL_DIRS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == (
        ["pyspark.sql.connect.session", "1500", "['task',", "'label',", "'confidence']"]
    )
    (answers,) = (tmp_path / "scratch").iterdir()
    fit_pack(MajorityVote(), pack, tmp_path / "files")
    one, two = table_of(answers), table_of(tmp_path / "files")
    np.testing.assert_array_equal(one["confidence"], two["confidence"])


# ------------------------------------------------------------------------------- without a session


class _TwinSession:
    """A session that runs every task in this process, between two attempts that leave torn files.

    The first of these stands for a killed attempt, the last one for a speculative twin.
    """

    def __init__(self):
        self.attempts = 0

    def range(self, start, end, step, n_partitions):
        assert end == n_partitions
        self.blocks = list(range(start, end, step))
        return self

    def mapInArrow(self, step, schema):
        self.step = step
        return self

    def run(self, block):
        import pyarrow as pa

        self.attempts += 1
        numbers = pa.RecordBatch.from_pydict({"id": [block]})
        (batch,) = self.step(iter([numbers]))
        (row,) = batch.to_pylist()
        return SimpleNamespace(**row)

    def collect(self):
        rows = []
        for block in self.blocks:
            self.tear(self.run(block))
            rows.append(self.run(block))
            self.tear(self.run(block))
        return rows[::-1]

    def tear(self, row):
        job = spark_step.BlockTask(*self.step.args[0])
        if job.parts is not None:
            for file in spark_step.parts_of(job.parts, row.first, row.attempt).iterdir():
                file.write_bytes(b"torn")
        if row.content is None:
            spark_step.statistics_of(job.job, row.first, row.attempt).write_bytes(b"torn")


@pytest.mark.parametrize("name", ["dawid-skene", "glad"])
def test_twins_and_torn_attempts_are_harmless(name, pack, tmp_path, monkeypatch):
    session = _TwinSession()
    monkeypatch.setattr(spark_step, "attempt_number", lambda: session.attempts)
    monkeypatch.setattr(spark_step, "set_threads", lambda n: None)
    engine = wc.engines.spark(session, pack, tasks=4)
    method = get_method(name)(max_iter=2)
    here = fit_pack(method, pack, tmp_path / "files")
    there = fit_pack(method, pack, tmp_path / "spark", engine=engine)
    equal(there, here, tmp_path / "spark", tmp_path / "files")
    assert "does not see" in session.run(0).error  # a late twin finds its job gone
    assert sorted(p.name for p in tmp_path.iterdir()) == ["files", "spark"]
    assert len(list((tmp_path / "spark").iterdir())) == N_SHARDS


class _Session:
    """Stands for a session that is never used."""

    def range(self, *numbers):
        raise AssertionError


def test_what_an_engine_refuses(pack, tmp_path):
    with pytest.raises(ParameterError, match="give a SparkSession"):
        wc.engines.spark("local", pack)
    with pytest.raises(ParameterError, match="tasks"):
        wc.engines.spark(_Session(), pack, tasks=0)
    with pytest.raises(DataError, match=r"no pack\.json"):
        wc.engines.spark(_Session(), tmp_path)
    engine = wc.engines.spark(_Session(), pack)
    with pytest.raises(ParameterError, match=r"gold does not go with a pack .* wisecrowd\.pack"):
        wc.aggregate(engine, "majority-vote", gold={1: "a"})
    with pytest.raises(ParameterError, match=r"ebcc needs all labels .* dawid-skene"):
        wc.aggregate(engine, "ebcc")
    write_table(tmp_path / "a.csv", {"task": [1], "worker": [2], "label": ["a"]})
    other = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack")
    with pytest.raises(ParameterError, match="the pack to fit is"):
        fit_pack(MajorityVote(), other, engine=engine)


def test_a_session_without_context_gets_a_number_of_tasks(pack):
    assert wc.engines.spark(_Session(), pack)._n_tasks == N_SHARDS


def test_reasons_of_spark_are_one_sentence():
    lines = ["An exception was thrown from the Python worker:", "Traceback (most recent call):",
             "  File ...", "ModuleNotFoundError: No module named 'wisecrowd.engines'"]  # fmt: skip
    assert "have no wisecrowd; install wisecrowd" in spark_engine._reason("\n".join(lines))
    assert "(Job aborted)" in spark_engine._reason("Job aborted.\n\tat org.apache.spark")
    assert "no reason given" in spark_engine._reason("")


def test_workers_that_do_not_see_the_files_say_so(pack, tmp_path, monkeypatch):
    import pyarrow as pa

    monkeypatch.setattr(spark_step, "attempt_number", lambda: 1)
    monkeypatch.setattr(spark_step, "set_threads", lambda n: None)
    task = spark_step.BlockTask(
        wc.__version__, str(pack.path), pack.digest, 1, str(tmp_path / "job"), "wisecrowd", None
    )
    numbers = pa.RecordBatch.from_pydict({"id": [0]})
    (batch,) = spark_step.run_rows(tuple(task), iter([numbers]))
    (row,) = batch.to_pylist()
    assert "does not see" in row["error"]
    assert row["first"] is None


JAVA = "#!/bin/sh\necho 'openjdk version \"{}\"' >&2\n"


@pytest.mark.parametrize("version", [None, "11.0.2", "unknown"])
def test_java_absent_or_old_is_one_sentence(version, tmp_path, monkeypatch):
    places = tmp_path / "bin"
    places.mkdir()
    if version is not None:
        (places / "java").write_text(JAVA.format(version))
        (places / "java").chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(places) + ("" if version is None else ":/bin:/usr/bin"))
    reasons = {None: "PATH has none", "11.0.2": "is Java 11", "unknown": "not tell its version"}
    with pytest.raises(DataError, match=rf"{reasons[version]}; install Java 17 or newer"):
        spark_engine.check_java()
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if version is None:
        with pytest.raises(DataError, match=r"JAVA_HOME .* has none"):
            spark_engine.check_java()


def test_java_17_is_enough(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text(JAVA.format("17.0.1"))
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    spark_engine.check_java()


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingDependencyError, match=r"wisecrowd\[spark\]"):
        spark_engine.get_session()
