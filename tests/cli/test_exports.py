"""Results for other programs, from the command line."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.faults import Fault, run_with, whole_files

from wisecrowd.aggregation import DawidSkene
from wisecrowd.io.tables import read

EXPORT = Path(__file__).parents[1] / "io" / "fixtures" / "label_studio.json"


def test_aggregate_writes_soft_labels_and_predictions(cli, tmp_path):
    done = cli(
        "aggregate", EXPORT, "-m", "dawid-skene", "-o", tmp_path / "labels.csv",
        "--soft-labels", tmp_path / "soft.npy", "--predictions", tmp_path / "predictions.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    fit = DawidSkene().fit(read(EXPORT))
    assert np.array_equal(np.load(tmp_path / "soft.npy"), fit.probas_)
    back = read(tmp_path / "predictions.json")
    assert back.worker_kind.tolist() == ["model"]
    assert back.classes[back.label].tolist() == fit.labels_.tolist()
    manifest = json.loads((tmp_path / "soft.npy.manifest.json").read_text())
    assert manifest["method"] == "dawid-skene"
    assert (tmp_path / "predictions.json.manifest.json").exists()
    assert f"wrote {tmp_path / 'soft.npy'}, {tmp_path / 'soft.ids.json'}" in done.err


def test_predictions_of_an_export_in_another_encoding(cli, tmp_path):
    export, place = tmp_path / "e.json", tmp_path / "p.json"
    records = json.loads(EXPORT.read_text(encoding="utf-8"))
    records[0]["data"]["text"] = "café"
    export.write_text(json.dumps(records, ensure_ascii=False), encoding="latin-1")
    done = cli("aggregate", export, "--encoding", "latin-1", "-q", "-o", tmp_path / "l.csv",
               "--predictions", place)  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(place.read_text())[0]["data"]["text"] == "café"


def test_predictions_of_a_plain_table(cli, answers, tmp_path):
    place = tmp_path / "p.json"
    done = cli("aggregate", answers, "-q", "-o", tmp_path / "l.csv", "--predictions", place,
               "--from-name", "animal", "--to-name", "img")  # fmt: skip
    assert done.code == 0, done.err
    first = json.loads(place.read_text())[0]
    assert first["id"] == "t1"
    assert first["predictions"][0]["result"][0]["to_name"] == "img"


def test_predictions_say_how_label_studio_takes_them(cli, tmp_path):
    place = tmp_path / "p.json"
    done = cli("aggregate", EXPORT, "-o", tmp_path / "l.csv", "--predictions", place)
    assert "makes new tasks of it; for those in the project use --existing-tasks" in done.err
    done = cli("aggregate", EXPORT, "-o", tmp_path / "l.csv", "--predictions", place,
               "--existing-tasks")  # fmt: skip
    assert "rows for Label Studio's POST /api/projects/ID/import/predictions" in done.err
    assert [row["task"] for row in json.loads(place.read_text())] == [1, 2, 3]


def test_predictions_of_a_flat_export_need_a_name_before_the_fit(cli, tmp_path):
    flat, place = EXPORT.with_suffix(".csv"), tmp_path / "p.json"
    done = cli("aggregate", flat, "-o", tmp_path / "l.csv", "--predictions", place)
    assert done.code == 2
    assert "give --to-name NAME" in done.err
    assert list(tmp_path.iterdir()) == []
    done = cli("aggregate", flat, "-o", tmp_path / "l.csv", "--predictions", place, "--to-name",
               "img", "-q")  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(place.read_text())[0]["data"] == {"image": "1.jpg"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--existing-tasks"], "belong to --predictions"),
        (["--soft-labels", "soft.xls"], "end the name in .npy"),
        (["--predictions", "p.csv"], "end in .json"),
        (["--from-name", "x"], "belong to --predictions"),
        (["--soft-labels", "x.npy", "--predictions", "x.ids.json"], "would overwrite x.npy"),
        (["--soft-labels", "gone/x.npy"], "the directory gone does not exist"),
    ],
)
def test_wrong_places_are_refused_before_the_fit(cli, answers, written, options, sentence,
                                                 tmp_path, monkeypatch):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = cli("aggregate", answers, "-o", "labels.csv", *options)
    assert done.code in (2, 3)
    if "overwrite" in sentence:
        assert "would overwrite" in done.err
    else:
        assert sentence in done.err
    assert written(answers) == set()


def test_hugging_face_that_is_not_installed_is_said_before_the_fit(
    cli, answers, written, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "datasets", None)
    done = cli("aggregate", answers, "-o", tmp_path / "l.csv", "--soft-labels", tmp_path / "hf")
    assert done.code == 3
    assert "pip install datasets" in done.err
    assert written(answers) == set()


def test_an_input_is_never_overwritten_by_a_manifest(cli, table, tmp_path):
    rows = [("t1", "ann", "cat")]
    source = table("labels.csv.manifest.json", ["task", "worker", "label"], rows)
    done = cli("aggregate", source, "--format", "csv", "-o", tmp_path / "labels.csv")
    assert done.code == 2
    assert "would overwrite" in done.err


def test_an_input_is_never_overwritten_by_a_table_beside_a_report(cli, tmp_path):
    pytest.importorskip("jinja2")
    place = tmp_path / "report.workers.parquet"
    rows = {"task": ["a"], "worker": ["b"], "label": ["c"]}
    from wisecrowd.io.writing import write_table

    write_table(place, rows)
    before = place.read_bytes()
    done = cli("report", place, "-o", tmp_path / "report.html", "--tables")
    assert done.code == 2
    assert "would overwrite" in done.err
    assert place.read_bytes() == before


def test_limits_are_raised_on_the_command_line(cli, answers, tmp_path):
    done = cli("--limit", "rows=3", "aggregate", answers)
    assert done.code == 3
    assert "14 rows or more, over the limit of 3" in done.err
    assert "wisecrowd --limit rows=40 COMMAND" in done.err
    assert cli("--limit", "rows=40", "aggregate", answers, "-q").code == 0
    assert cli("--limit", "row=40", "aggregate", answers).code == 2


def test_predict_writes_them_too(cli, tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 3)))
    lines = [f"{i},w{j},{(i + j) % 2}" for i in range(20) for j in range(3)]
    (tmp_path / "a.csv").write_text("task,worker,label\n" + "\n".join(lines) + "\n")
    done = cli("train", tmp_path / "x.npy", tmp_path / "a.csv", "-o", tmp_path / "m",
               "-m", "agg-net", "--epochs", 1, "-q")  # fmt: skip
    assert done.code == 0, done.err
    done = cli("predict", tmp_path / "m", tmp_path / "x.npy", "-q", "-o", tmp_path / "p.csv",
               "--soft", "--soft-labels", tmp_path / "s.npy", "--predictions",
               tmp_path / "ls.json")  # fmt: skip
    assert done.code == 0, done.err
    soft = np.load(tmp_path / "s.npy")
    assert soft.shape == (20, 2)
    assert np.allclose(soft.sum(axis=1), 1)
    assert json.loads((tmp_path / "s.ids.json").read_text())["tasks"] == list(range(20))
    assert len(json.loads((tmp_path / "ls.json").read_text())) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("name", ["soft.npy", "soft.parquet", "soft.jsonl"])
def test_soft_labels_on_a_full_disk(tmp_path, name):
    rows = [f"t{t},{worker},{t % 3}\n" for t in range(2000) for worker in ("ann", "bob")]
    (tmp_path / "a.csv").write_text("task,worker,label\n" + "".join(rows))
    command = ["aggregate", "a.csv", "-q", "-m", "majority-vote", "-o", "/dev/null"]
    done = run_with(Fault("full at byte", 10_000), [*command, "--soft-labels", name], tmp_path)
    assert (done.code, done.out) == (3, b"")
    assert done.err.startswith(f"wisecrowd: Cannot write {name}: ")
    assert done.err.count("\n") == 1
    assert set(whole_files(tmp_path)) == {"a.csv"}


def test_soft_labels_need_a_name_that_tells_the_format(cli, answers):
    code, _, err = cli("aggregate", answers, "--soft-labels", "/dev/full")
    assert code == 2
    assert "end the name in .npy" in err
