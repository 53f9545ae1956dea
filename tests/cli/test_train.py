"""train, predict and compare --features, from files to files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.storage import read_manifest

pytest.importorskip("torch")

FAST = ("-p", "module=linear", "-p", "lr=0.1", "--epochs", "10")


@pytest.fixture
def problem(tmp_path):
    """Sixty tasks in two clouds, labelled by three workers; ids are row numbers as text."""
    rng = np.random.default_rng(0)
    z = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + 3 * np.eye(3)[z]
    np.save(tmp_path / "x.npy", X)
    rows = [
        f"{i},{worker},{'dog' if (z[i] ^ (rng.random() < error)) else 'cat'}"
        for i in range(60)
        for worker, error in (("ann", 0.05), ("bob", 0.2), ("cem", 0.3))
    ]
    (tmp_path / "answers.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    truth = [f"{i},{'dog' if z[i] else 'cat'}" for i in range(60)]
    (tmp_path / "truth.csv").write_text("task,label\n" + "\n".join(truth) + "\n")
    return tmp_path


def train(cli, problem, *options, method="ccem"):
    return cli(
        "train", problem / "x.npy", problem / "answers.csv", "-m", method,
        "-o", problem / "model", *FAST, *options,
    )  # fmt: skip


def test_train_then_predict(cli, problem, rows):
    code, out, err = train(cli, problem, "--labels", problem / "labels.csv")
    assert (code, out) == (0, "")
    assert "ccem: 60 tasks, 3 workers, 2 classes, 180 labels; 10 epochs" in err
    assert len(rows(problem / "labels.csv")) == 60
    assert read_manifest(problem / "model").method == "ccem"
    assert not list(problem.glob("*.checkpoint*"))
    code, out, err = cli("predict", problem / "model", problem / "x.npy", "--soft")
    found = rows(out)
    assert code == 0
    assert list(found[0]) == ["task", "label", "confidence", "p_cat", "p_dog"]
    truth = [row["label"] for row in rows(problem / "truth.csv")]
    assert np.mean([row["label"] == t for row, t in zip(found, truth, strict=True)]) > 0.9
    model = wc.load(problem / "model")
    expected = model.predict_proba(np.load(problem / "x.npy"))
    np.testing.assert_allclose([float(row["p_cat"]) for row in found], expected[:, 0], rtol=5e-6)


def test_workers_can_be_hidden_from_training_to_prediction(cli, problem, rows):
    key = problem / "key"
    key.write_text("a secret that is long enough to be one")
    hidden = ("--pseudonymize", key)
    train = ("train", problem / "x.npy", problem / "answers.csv", "-o", problem / "hidden")
    done = cli(*train, "-m", "ccem", *FAST, *hidden, "--workers", problem / "workers.csv")
    assert done.code == 0, done.err
    assert not {row["worker"] for row in rows(problem / "workers.csv")} & {"ann", "bob", "cem"}
    predict = (
        "predict",
        problem / "hidden",
        problem / "x.npy",
        "--answers",
        problem / "answers.csv",
    )
    assert cli(*predict, *hidden).code == 0
    assert "were not in the fit, such as 'ann'" in cli(*predict).err
    assert cli(*train, *hidden, "--workers", key).code == 2


def test_predict_with_labels_listens_to_them(cli, problem, rows):
    train(cli, problem)
    alone = cli("predict", problem / "model", problem / "x.npy")[1]
    both = cli(
        "predict", problem / "model", problem / "x.npy", "--answers", problem / "answers.csv"
    )[1]
    sure = [np.mean([float(row["confidence"]) for row in rows(out)]) for out in (alone, both)]
    assert sure[1] > sure[0]


def test_ids_align_rows_and_without_them_nothing_is_guessed(cli, problem):
    answers = (problem / "answers.csv").read_text().splitlines()
    named = [answers[0], *("t" + line for line in answers[1:])]
    (problem / "answers.csv").write_text("\n".join(named) + "\n")
    code, _, err = train(cli, problem)
    assert code == 3
    assert "60 rows" in err
    assert "60 tasks" in err
    (problem / "ids.txt").write_text("".join(f"t{i}\n" for i in range(60)))
    code, _, _ = train(cli, problem, "--ids", problem / "ids.txt")
    assert code == 0


def test_selection_by_crowd_and_by_gold_is_said(cli, problem):
    code, out, err = train(cli, problem, "--valid-from-crowd", "--json")
    assert code == 0
    assert "chosen by the crowd's held-out labels" in err
    assert json.loads(out)["finished"] is True
    valid = ("--valid", problem / "x.npy", "--valid-truth", problem / "truth.csv")
    code, _, err = train(cli, problem, *valid)
    assert code == 0
    assert "chosen by the validation set" in err
    code, _, err = train(cli, problem, "--valid", problem / "x.npy")
    assert code == 2
    assert "belong together" in err


def test_a_method_for_labels_alone_is_explained(cli, problem):
    code, _, err = train(cli, problem, method="dawid-skene")
    assert code == 2
    assert "wisecrowd aggregate" in err
    cli("aggregate", problem / "answers.csv", "-o", problem / "l.csv", "--save", problem / "ds")
    code, _, err = cli("predict", problem / "ds", problem / "x.npy")
    assert code == 3
    assert "no features" in err


def test_compare_ranks_without_gold_and_with_it(cli, problem):
    options = ("--features", problem / "x.npy", problem / "answers.csv", *FAST[:4])
    names = ("--methods", "ccem,raykar", "-p", "epochs=5")
    code, out, _ = cli("compare", *options, *names, "--json")
    answer = json.loads(out)
    found = answer["methods"]
    assert code == 0
    scores = [row["held_out_score"] for row in found]
    assert scores == sorted(scores, reverse=True)
    assert [row["near_best"] for row in found] == [True, True]
    assert [row["recommended"] for row in found] == [False, False]  # neither leads the other
    assert answer["recommended"] is None
    assert "predicts held-out labels best" in answer["reason"]
    assert answer["reason"].endswith("compare the default, auto, too.")
    assert all(row["standard_error"] > 0 for row in found)
    assert "test_accuracy" not in found[0]
    test = ("--test", problem / "x.npy", "--test-truth", problem / "truth.csv")
    code, out, _ = cli("compare", *options, *names, *test, "--truth", problem / "truth.csv")
    assert code == 0
    assert out.splitlines()[0].split()[:3] == ["method", "test", "accuracy"]
    assert "No method is recommended" in out


def test_auto_is_trained_by_default(cli, problem):
    model = problem / "automatic"
    code, _, err = cli("train", problem / "x.npy", problem / "answers.csv", "-o", model)
    assert code == 0
    assert "held-out labels" in err  # why it was chosen
    fitted = wc.load(model)
    assert fitted.chosen_ in fitted.scores_


def test_compare_reports_why_auto_chose(cli, problem):
    options = ("--features", problem / "x.npy", problem / "answers.csv")
    code, out, err = cli("compare", *options, "--methods", "auto,vote-regression")
    assert code == 0
    assert "auto: " in err
    assert "held-out" in out


def test_compare_says_that_options_need_features(cli, problem):
    code, _, err = cli("compare", problem / "answers.csv", "--ids", problem / "x.npy")
    assert code == 2
    assert "--features" in err


def test_compare_refuses_a_parameter_that_no_method_has(cli, problem):
    command = ("compare", "--features", problem / "x.npy", problem / "answers.csv")
    names = ("--methods", "ccem,two-stage")
    code, _, err = cli(*command, *names, "-p", "epocs=5")
    assert code == 2
    assert "None of the compared methods has a parameter 'epocs' (did you mean 'epochs'?)" in err
    found = cli(*command, "--methods", "two-stage", "-p", "aggregator__tol=1").out
    assert "aggregator of two-stage has no parameters" in found  # and is not passed over


def test_killed_and_resumed_the_weights_are_the_same(problem):
    """Kill -9 in the middle; --resume ends where an undisturbed run ends."""
    command = [
        sys.executable, "-m", "wisecrowd", "train", "x.npy", "answers.csv", "-m", "ccem",
        "-p", "module=mlp", "--epochs", "80", "-q",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "-o", "whole"], cwd=problem, env=environment, check=True)
    running = subprocess.Popen([*command, "-o", "cut"], cwd=problem, env=environment)
    checkpoint = problem / "cut.checkpoint"
    until = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < until:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert not (problem / "cut").exists()
    assert checkpoint.exists()
    again = [*command, "-o", "cut", "--resume"]
    subprocess.run(again, cwd=problem, env=environment, check=True)
    one, other = (
        (problem / name / "network.safetensors").read_bytes() for name in ("whole", "cut")
    )
    assert one == other


def test_predictions_as_json_and_as_a_table(cli, problem):
    """As in aggregate: JSON goes to a .json file, and names a table that went to another one."""
    train(cli, problem)
    command = ["predict", problem / "model", problem / "x.npy", "--json"]
    printed = json.loads(cli(*command).out)
    code, out, _ = cli(*command, "-o", problem / "p.json")
    assert (code, out) == (0, "")
    written = json.loads((problem / "p.json").read_text())
    assert written["predictions"] == printed["predictions"]
    table = problem / "p.csv"
    assert json.loads(cli(*command, "-o", table).out)["predictions"] == str(table)
    assert table.read_text().startswith("task,label,confidence")
