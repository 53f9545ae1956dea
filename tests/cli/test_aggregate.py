from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import sys
import threading

import numpy as np
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.registry import method_names
from wisecrowd.storage import read_manifest

COLUMNS = ["task", "label", "confidence", "tie", "n_labels"]


def test_labels_go_to_standard_output_and_notes_to_standard_error(cli, answers, rows):
    code, out, err = cli("aggregate", answers)
    expected = wc.aggregation.Auto().fit(wc.read(answers))
    found = rows(out)
    assert code == 0
    assert list(found[0]) == COLUMNS
    assert [row["task"] for row in found] == expected.tasks_.tolist()
    assert [row["label"] for row in found] == expected.labels_.tolist()
    shown = [float(row["confidence"]) for row in found]
    np.testing.assert_allclose(shown, expected.confidence_, rtol=5e-6)
    assert [int(row["n_labels"]) for row in found] == [3, 3, 3, 2, 3]
    assert err.startswith("auto: 5 tasks, 3 workers, 2 classes, 14 labels; ")
    assert f"\nauto: {expected.reason_}\n" in err


def test_quiet_says_nothing(cli, answers):
    code, out, err = cli("aggregate", answers, "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("task,label,")


def test_files_and_their_manifests(cli, answers, tmp_path, rows, written):
    labels, workers = tmp_path / "labels.csv", tmp_path / "workers.csv"
    code, out, err = cli(
        "aggregate", answers, "-m", "dawid-skene", "-o", labels, "--workers", workers, "--seed", 3
    )
    assert (code, out) == (0, "")
    assert f"wrote {labels} (5 rows)" in err
    assert written(answers) == {
        "labels.csv", "labels.csv.manifest.json", "workers.csv", "workers.csv.manifest.json",
    }  # fmt: skip
    quality = {row["worker"]: float(row["agreement_with_result"]) for row in rows(workers)}
    assert quality["ann"] > quality["cem"]
    manifest = read_manifest(labels)
    assert manifest.wisecrowd == wc.__version__
    assert manifest.method == "dawid-skene"
    assert manifest.seed == manifest.parameters["random_state"] == 3
    assert manifest.parameters["max_iter"] == 200
    assert manifest.inputs == {str(answers): hashlib.sha256(answers.read_bytes()).hexdigest()}
    assert manifest.command[:2] == ["wisecrowd", "aggregate"]
    other = read_manifest(workers)  # raises if it is not that of the file beside it
    assert dataclasses.replace(other, output_sha256=manifest.output_sha256) == manifest


@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet", "csv.gz"])
def test_the_suffix_is_the_format(cli, answers, tmp_path, suffix):
    target = tmp_path / f"labels.{suffix}"
    assert cli("aggregate", answers, "-o", target).code == 0
    if suffix == "parquet":
        assert pq.read_table(target).column_names == COLUMNS
    elif suffix == "jsonl":
        assert list(json.loads(target.read_text().splitlines()[0])) == COLUMNS
    elif suffix == "tsv":
        assert target.read_text().splitlines()[0] == "\t".join(COLUMNS)
    else:
        assert target.read_bytes()[:2] == b"\x1f\x8b"


def test_parameters_and_method(cli, answers, rows):
    out = cli("aggregate", answers, "-m", "dawid-skene", "-p", "prior=none", "-p", "max_iter=2").out
    expected = wc.aggregation.DawidSkene(prior=None, max_iter=2).fit(wc.read(answers))
    shown = [float(row["confidence"]) for row in rows(out)]
    np.testing.assert_allclose(shown, expected.confidence_, rtol=5e-6)


@pytest.mark.parametrize("name", method_names())
def test_every_method_runs_by_name(cli, answers, name, rows):
    code, out, err = cli("aggregate", answers, "-m", name)
    assert code == 0, err
    assert len(rows(out)) == 5


def test_gold_is_kept(cli, answers, table, rows):
    gold = table("gold.csv", ["task", "label"], [("t2", "cat")])
    found = rows(cli("aggregate", answers, "--gold", gold).out)
    assert (found[1]["task"], found[1]["label"]) == ("t2", "cat")
    assert float(found[1]["confidence"]) == 1.0


def test_soft_adds_a_column_per_class(cli, answers, rows):
    found = rows(cli("aggregate", answers, "--soft").out)
    expected = wc.aggregation.Auto().fit(wc.read(answers)).probas_
    got = [[float(row["p_cat"]), float(row["p_dog"])] for row in found]
    np.testing.assert_allclose(got, expected, rtol=5e-6)


def test_columns_classes_and_abstentions(cli, table, rows):
    path = table(
        "a.csv",
        ["case", "doctor", "opinion", "times"],
        [("1", "a", "x", 2), ("1", "b", "unsure", 1), ("2", "a", "y", 1), ("2", "b", "y", 1)],
    )
    code, out, err = cli(
        "aggregate", path, "--task", "case", "--worker", "doctor", "--label", "opinion",
        "--weight", "times", "--classes", "x, y,z", "--abstain", "unsure", "--soft",
    )  # fmt: skip
    assert code == 0
    assert [row["n_labels"] for row in rows(out)] == ["1", "2"]
    assert "p_z" in rows(out)[0]
    assert "1 abstention" in err


def test_recognised_columns_are_said(cli, table):
    path = table("a.csv", ["item", "rater", "answer"], [("1", "a", "x"), ("1", "b", "x")])
    err = cli("aggregate", path).err
    assert "columns recognised: task = 'item', worker = 'rater', label = 'answer'" in err


def test_duplicates_are_counted_once_in_the_notes(cli, table):
    path = table("a.csv", ["task", "worker", "label"], [("1", "a", "x"), ("1", "a", "y")])
    err = cli("aggregate", path).err
    assert err.count("repeat a (task, worker) pair") == 1
    assert cli("aggregate", path, "--duplicates", "keep").code == 0
    assert cli("aggregate", path, "--duplicates", "error").code == 3
    assert cli("aggregate", path, "--duplicates", "first").code == 2


def test_several_files_a_glob_and_standard_input(cli, answers, table, tmp_path, monkeypatch):
    header, *lines = answers.read_text().splitlines(keepends=True)
    whole = cli("aggregate", answers, "-q").out
    for number, part in enumerate((lines[:6], lines[6:])):
        (tmp_path / f"part{number}.csv").write_text(header + "".join(part))
    two = cli("aggregate", tmp_path / "part0.csv", tmp_path / "part1.csv", "-q").out
    by_glob = cli("aggregate", tmp_path / "part*.csv", "-q").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answers.read_bytes())))
    piped = cli("aggregate", "-", "-q").out
    assert two == by_glob == piped == whole


def test_json_is_one_object_with_everything(cli, answers):
    found = json.loads(cli("aggregate", answers, "-m", "dawid-skene", "--json", "--seed", 2).out)
    assert found["method"] == "dawid-skene"
    assert found["seed"] == 2
    assert found["classes"] == ["cat", "dog"]
    assert (found["n_tasks"], found["n_workers"], found["n_labels"]) == (5, 3, 14)
    assert [row["label"] for row in found["labels"]][:3] == ["cat", "dog", "cat"]
    assert list(found["labels"][0]) == COLUMNS
    assert {row["worker"] for row in found["workers"]} == {"ann", "bob", "cem"}


def test_json_has_the_choice_of_the_default_method(cli, tmp_path):
    crowd = simulate.crowd(60, 8 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(4))
    simulate.write(crowd, tmp_path / "crowd")
    path = tmp_path / "crowd" / "answers.csv"
    code, out, err = cli("aggregate", path, "--json")
    expected = wc.aggregation.Auto().fit(wc.read(path))
    found = json.loads(out)
    assert (code, found["method"], found["seed"]) == (0, "auto", None)
    assert found["chosen"] == expected.chosen_
    assert found["scores"] == expected.scores_
    assert set(found["scores"]) == set(expected.candidates)
    assert found["agreement"] == expected.agreement_
    assert found["overruled"] == expected.overruled_
    assert found["reason"] == expected.reason_
    assert f"auto: {expected.reason_}" in found["notes"]
    assert "held-out labels" in err


def test_json_names_what_went_to_a_file(cli, answers, tmp_path):
    found = json.loads(cli("aggregate", answers, "--json", "-o", tmp_path / "l.csv").out)
    assert found["labels"] == str(tmp_path / "l.csv")
    assert isinstance(found["workers"], list)


def test_workers_on_standard_output(cli, answers, tmp_path, rows):
    out = cli("aggregate", answers, "-q", "-o", tmp_path / "l.csv", "--workers", "-").out
    assert [row["worker"] for row in rows(out)] == ["ann", "bob", "cem"]
    both = cli("aggregate", answers, "--workers", "-", "--json").out
    assert isinstance(json.loads(both)["workers"], list)
    code, out, err = cli("aggregate", answers, "--workers", "-")
    assert (code, out) == (2, "")
    assert "cannot both go to standard output" in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_hashed(cli, answers, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(answers.read_bytes()))
    writer.start()
    code, _, err = cli("aggregate", pipe, "-o", tmp_path / "labels.csv")
    writer.join()
    assert code == 0, err
    assert read_manifest(tmp_path / "labels.csv").inputs == {}


def test_saved_method_predicts_as_before(cli, answers, tmp_path):
    assert cli("aggregate", answers, "--save", tmp_path / "model").code == 0
    loaded = wc.load(tmp_path / "model")
    labels = wc.read(answers)
    fresh = wc.aggregation.Auto().fit(labels)
    assert np.array_equal(loaded.predict_proba(labels), fresh.predict_proba(labels))
    assert read_manifest(tmp_path / "model").method == "auto"


def test_not_converged_is_said(cli, answers):
    done = cli("aggregate", answers, "-m", "dawid-skene", "-p", "max_iter=1")
    assert "not converged: raise -p max_iter or accept it" in done.err


def test_ties_are_marked(cli, table, rows):
    path = table("a.csv", ["task", "worker", "label"], [("1", "a", "x"), ("1", "b", "y")])
    code, out, err = cli("aggregate", path)
    assert code == 0
    assert rows(out)[0]["tie"] == "true"
    assert rows(out)[0]["label"] == "x"
    assert "; 1 tie" in err


def test_ids_with_control_characters(cli, table, monkeypatch):
    path = table("a.csv", ["task", "worker", "label"], [("\x1b[2Jt", "a", "x"), ("u", "a", "x")])
    piped = cli("aggregate", path).out
    assert "\x1b[2Jt," in piped  # a pipe gets the data as they are
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    shown = cli("aggregate", path, "-q").out
    assert "\x1b" not in shown
    assert r"\x1b[2Jt," in shown


def test_same_bits_for_any_number_of_threads(cli, answers):
    one = cli("aggregate", answers, "--threads", 1, "-q").out
    assert one == cli("aggregate", answers, "--threads", 2, "-q").out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-m", "david-skene"], 2, "did you mean 'dawid-skene'"),
        (["-m", "dawid-skene", "-p", "max_itre=3"], 2, "did you mean 'max_iter'"),
        (["-m", "dawid-skene", "-p", "max_iter=0"], 2, "max_iter is 0"),
        (["-p", "max_iter=3"], 2, "To set a parameter of another method, name a method with -m."),
        (["-o", "labels.xyz"], 2, "end it in .csv"),
        (["-o", "no/such/place/labels.csv"], 3, "no/such/place does not exist"),
        (["--format", "xlsx"], 2, "no format 'xlsx'"),
    ],
)
def test_wrong_options_are_refused_before_any_work(cli, answers, written, options, code, message):
    outcome = cli("aggregate", answers, *options)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert written(answers) == set()


def test_outputs_do_not_overwrite_inputs_or_each_other(cli, answers, tmp_path):
    before = answers.read_bytes()
    assert cli("aggregate", answers, "-o", answers).code == 2
    same = tmp_path / "x.csv"
    code, _, err = cli("aggregate", answers, "-o", same, "--workers", tmp_path / "." / "x.csv")
    assert code == 2
    assert "would overwrite" in err
    assert answers.read_bytes() == before


def test_interrupt_while_writing_leaves_nothing(cli, answers, tmp_path, written, monkeypatch):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("wisecrowd.storage.atomic._flush_to_disk", interrupted)
    assert cli("aggregate", answers, "-o", tmp_path / "labels.csv").code == 130
    assert written(answers) == set()


def test_other_encodings_are_named(cli, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("task,worker,label\n1,a,Grün\n2,a,Blau\n".encode("latin-1"))
    assert cli("aggregate", path)[0] == 3
    code, out, _ = cli("aggregate", path, "--encoding", "latin-1")
    assert code == 0
    assert "Grün" in out
    assert cli("aggregate", path, "--encoding", "klingon")[0] == 2


def test_calibrated_confidences_are_those_at_the_temperature(cli, table, rows):
    made = wc.simulate.crowd(150, 75 * wc.simulate.OneCoinWorkers(6, 2), random_state=2)
    columns = made.labels.to_dict()
    lines = zip(*map(np.ndarray.tolist, columns.values()), strict=True)
    answers = table("sparse.csv", list(columns), lines)
    code, out, err = cli("aggregate", answers, "-m", "mean-field", "--calibrate")
    assert code == 0, err
    model = wc.aggregation.MeanField().fit(wc.read(answers))
    found = wc.audit.find_temperature(wc.read(answers), fit=model)
    assert found.temperature > 1.1
    expected = found.apply(model.probas_).max(axis=1)
    shown = [float(row["confidence"]) for row in rows(out)]
    np.testing.assert_allclose(shown, expected, rtol=5e-6)
    assert f"confidences are at temperature {found.temperature:.3g}" in err


def test_doubts_are_printed_once(cli, table):
    answers = table("three.csv", ["task", "worker", "label"],
                    [(i, w, i % 2) for i in range(40) for w in "abcde"])  # fmt: skip
    _, _, err = cli("aggregate", answers, "--classes", "0,1,2")
    assert err.count("No label says") == 1
