"""The command ``pack``, and packs as input of other commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wisecrowd
from wisecrowd.cli.run import packs
from wisecrowd.storage import read_manifest


@pytest.fixture
def packed(cli, answers, tmp_path):
    folder = tmp_path / "crowd.pack"
    assert cli("pack", answers, "-o", folder, "--shards", "2", "-q").code == 0
    return folder


def test_pack_says_what_it_wrote(cli, answers, tmp_path):
    code, out, err = cli("pack", answers, "-o", tmp_path / "a.pack", "--verify")
    assert (code, out) == (0, "")
    assert "14 labels, 5 tasks, 3 workers, 2 classes in 16 shards" in err
    assert cli("pack", answers, "-o", tmp_path / "a.pack").code == 3


def test_inspect_describes_a_pack(cli, packed):
    code, out, _ = cli("inspect", packed)
    assert code == 0
    assert "format    pack" in out
    assert "14 labels by 3 workers of 5 tasks, 2 classes; 2 to 3 labels per task" in out
    assert "classes   cat 7, dog 7" in out
    assert json.loads(cli("inspect", packed, "--json").out)["n_workers"] == 3


def test_commands_read_a_pack_like_its_files(cli, answers, truth, packed):
    for command in (
        ("aggregate", "-m", "dawid-skene"), ("convert", "-"), ("audit", "--json"),
        ("compare", "--truth", truth, "--methods", "majority-vote,one-coin", "--json"),
    ):  # fmt: skip
        name, *options = command
        plain, other = (cli(name, source, *options) for source in (answers, packed))
        assert plain.code == other.code == 0, other.err
        if name in ("aggregate", "convert"):
            assert plain.out == other.out


def test_a_folder_gets_parts_and_a_manifest(cli, packed, rows, tmp_path):
    folder = tmp_path / "labels"
    code, out, err = cli(
        "aggregate", packed, "-m", "dawid-skene", "-o", f"{folder}/", "--workers",
        tmp_path / "workers.csv",
    )  # fmt: skip
    assert (code, out) == (0, ""), err
    assert "dawid-skene: 5 tasks, 3 workers" in err
    assert "not checked" not in err  # a sample of all tasks
    found = {
        row["task"]: row
        for part in sorted(folder.iterdir())
        for row in pq.read_table(part).to_pylist()
    }
    whole = rows(cli("aggregate", packed, "-m", "dawid-skene").out)
    assert {name: row["label"] for name, row in found.items()} == {
        row["task"]: row["label"] for row in whole
    }
    manifest = read_manifest(folder)
    assert manifest.method == "dawid-skene"
    assert list(manifest.inputs) == [str(packed / "pack.json")]
    assert {row["worker"] for row in rows(tmp_path / "workers.csv")} == {"ann", "bob", "cem"}
    assert not (tmp_path / "labels.scratch").exists()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_one_table_is_streamed(cli, packed, suffix, tmp_path):
    one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
    options = ("-m", "one-coin", "--soft")
    assert cli("aggregate", packed, *options, "-o", one, "--engine", "files").code == 0
    assert cli("aggregate", packed, *options, "-o", other, "--engine", "memory").code == 0
    if suffix == "csv":
        first, *shards = one.read_text().splitlines()
        assert first == other.read_text().splitlines()[0]
        assert sorted(shards) == sorted(other.read_text().splitlines()[1:])
    assert read_manifest(one).method == "one-coin"


def test_the_default_method_chooses_on_a_sample(cli, packed, tmp_path):
    code, _, err = cli("aggregate", packed, "-o", tmp_path / "labels")
    assert code == 0, err
    assert "chosen on a sample of 5 tasks" in err


def test_large_packs_go_by_shards(cli, packed, tmp_path, monkeypatch):
    monkeypatch.setattr(packs, "SHARE", 0.0)
    code, _, err = cli("aggregate", packed, "-m", "one-coin")
    assert code == 2
    assert "give -o FOLDER" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "cluster"], "choose one of auto, memory, files, pool"),
        (["--engine", "files", "--gold", "g.csv", "-o", "a"], "give --gold to wisecrowd pack"),
        (["--engine", "files", "--task", "id", "-o", "a"], "--task VALUE is for files"),
        (["--engine", "memory", "--resume"], "--resume is for fits by shards"),
        (["--engine", "files", "--processes", "2", "-o", "a"], "add --engine pool"),
        (["--engine", "files", "-m", "ebcc", "-o", "a"], "use one of"),
        (["--engine", "files", "--calibrate", "-o", "a"], "does not go with a fit by shards"),
    ],
)
def test_options_that_do_not_go_together(cli, packed, options, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("aggregate", packed, *options)
    assert code == 2
    assert message in err


def test_engines_of_packs_need_a_pack(cli, answers):
    code, _, err = cli("aggregate", answers, "--engine", "files")
    assert code == 2
    assert "make one with wisecrowd pack" in err


def test_spark_without_pyspark_names_the_extra(cli, packed, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    options = ("-m", "one-coin", "--engine", "spark", "-o", tmp_path / "labels")
    code, _, err = cli("aggregate", packed, *options)
    assert code == 3
    assert "pip install 'wisecrowd[spark]'" in err
    assert sorted(place.name for place in tmp_path.iterdir() if "labels" in place.name) == []


def test_the_script_for_spark_submit(cli):
    code, out, _ = cli("spark-script")
    script = Path(out.strip())
    assert code == 0
    assert script.is_file()
    # Python puts the folder first on its path: no other module may be there.
    assert {file.name for file in script.parent.glob("*.py")} == {"__init__.py", script.name}
    environment = {**os.environ, "PYTHONPATH": str(Path(wisecrowd.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, script, "audit", "a.csv"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2
    assert "Spark runs wisecrowd aggregate, not 'audit'" in done.stderr


@pytest.mark.parametrize("options", [["--shards", "x"], ["--patterns", "x"], ["--type", "boxes"]])
def test_wrong_options_of_pack(cli, answers, options, tmp_path):
    assert cli("pack", answers, "-o", tmp_path / "a.pack", *options).code == 2
    assert not (tmp_path / "a.pack").exists()


def test_gold_is_part_of_a_pack(cli, answers, truth, tmp_path, rows):
    assert cli("pack", answers, "-o", tmp_path / "a.pack", "--gold", truth).code == 0
    assert "gold      5 tasks" in cli("inspect", tmp_path / "a.pack").out
    found = rows(cli("aggregate", tmp_path / "a.pack", "-m", "one-coin").out)
    assert all(float(row["confidence"]) == 1 for row in found)
