"""train and predict of numbers and of pairs, from files to files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.storage import read_manifest

pytest.importorskip("torch")


@pytest.fixture
def problem(tmp_path):
    """Sixty rows with three features, rated by five workers, and compared by four and a foe."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    truth = 3 + X @ np.array([1.0, -2.0, 0.5])
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "new.npy", X[:7])
    ratings = [
        f"{i},w{j},{truth[i] + 0.3 * j + 0.2 * rng.normal():.3f}"
        for i in range(60)
        for j in rng.choice(5, 3, replace=False)
    ]
    (tmp_path / "ratings.csv").write_text("task,worker,rating\n" + "\n".join(ratings) + "\n")
    votes = []
    for _ in range(400):
        a, b = rng.choice(60, 2, replace=False)
        j = rng.integers(5)
        won = (truth[a] > truth[b]) ^ (j == 4)
        votes.append(f"w{j},{a},{b},{'left' if won else 'right'}")
    (tmp_path / "votes.csv").write_text("worker,left,right,label\n" + "\n".join(votes) + "\n")
    (tmp_path / "truth.csv").write_text(
        "task,label\n" + "".join(f"{i},{truth[i]}\n" for i in range(60))
    )
    return tmp_path


def table(path):
    return np.genfromtxt(path, delimiter=",", skip_header=1, dtype=float)


def test_numbers_have_a_default_method_values_and_intervals(cli, problem, rows):
    code, out, err = cli(
        "train", problem / "x.npy", problem / "ratings.csv", "--type", "numbers",
        "-o", problem / "model", "--labels", problem / "l.csv", "--workers", problem / "w.csv",
    )  # fmt: skip
    assert (code, out) == (0, "")
    assert "raykar-regression: 60 tasks, 5 workers, 180 labels" in err
    assert list(rows(problem / "l.csv")[0]) == ["task", "value", "low", "high", "n_labels"]
    assert list(rows(problem / "w.csv")[0]) == ["worker", "n_labels", "bias", "noise", "slope"]
    assert read_manifest(problem / "model").method == "raykar-regression"
    assert cli("predict", problem / "model", problem / "new.npy", "-o", problem / "p.csv").code == 0
    assert list(rows(problem / "p.csv")[0]) == ["task", "value", "low", "high"]
    found = table(problem / "p.csv")
    expected = wc.load(problem / "model").predict(np.load(problem / "new.npy"))
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-5)
    with_labels = cli(
        "predict", problem / "model", problem / "x.npy", "--answers", problem / "ratings.csv",
        "-o", problem / "q.csv",
    )  # fmt: skip
    assert with_labels.code == 0
    np.testing.assert_allclose(
        table(problem / "q.csv")[:, 1], table(problem / "l.csv")[:, 1], rtol=1e-5
    )


def test_gold_and_a_validation_set_of_numbers(cli, problem):
    common = ("-o", problem / "model", "--epochs", "3", "-m", "crowd-layer-regression")
    code, out, _ = cli(
        "train", problem / "x.npy", problem / "ratings.csv", *common, "--gold",
        problem / "truth.csv", "--valid", problem / "x.npy", "--valid-truth",
        problem / "truth.csv", "--json",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["method"] == "crowd-layer-regression"
    assert "classes" not in found
    assert found["best_epoch"] in (1, 2, 3)
    gold = table(problem / "truth.csv")[:, 1]
    np.testing.assert_allclose(wc.load(problem / "model").values_, gold, rtol=1e-12)


def test_votes_give_a_reward_and_preferences(cli, problem, rows):
    texts = "".join(f"{a},answer {a}\n" for a in range(60))
    (problem / "items.csv").write_text("item,text\n" + texts)
    code, _, err = cli(
        "train", problem / "x.npy", problem / "votes.csv", "-o", problem / "reward", "--epochs",
        "10", "--workers", problem / "w.csv", "--preferences", problem / "p.jsonl", "--items",
        problem / "items.csv",
    )  # fmt: skip
    assert code == 0
    assert "preference-net" in err
    assert "60 items, 400 labels; 10 epochs" in err
    assert "wrote 400 preferences" in err
    workers = {row["worker"]: float(row["reliability"]) for row in rows(problem / "w.csv")}
    assert workers["w4"] < 0.5 < workers["w0"]
    first = json.loads((problem / "p.jsonl").read_text().splitlines()[0])
    assert first["chosen"].startswith("answer ")
    assert list(first) == ["prompt", "chosen", "rejected", "worker", "flip_rate", "weight"]
    assert read_manifest(problem / "p.jsonl").method == "preference-net"
    code, out, _ = cli("predict", problem / "reward", problem / "new.npy")
    assert code == 0
    assert list(rows(out)[0]) == ["item", "score"]
    scores = [float(row["score"]) for row in rows(out)]
    truth = table(problem / "truth.csv")[:7, 1]
    assert np.corrcoef(scores, truth)[0, 1] > 0.9


def test_items_have_ids_of_their_own(cli, problem, rows):
    X = np.load(problem / "x.npy")
    lines = [f"{a},{x[0]},{x[1]},{x[2]}" for a, x in enumerate(X)]
    (problem / "x.csv").write_text("item,f1,f2,f3\n" + "\n".join(lines[::-1]) + "\n")
    options = ("-m", "reward-mixture", "-p", "n_groups=1", "-o", problem / "reward")
    assert cli("train", problem / "x.csv", problem / "votes.csv", *options).code == 0
    assert wc.load(problem / "reward").items_.tolist()[:2] == ["59", "58"]
    code, out, _ = cli("predict", problem / "reward", problem / "x.csv")
    assert code == 0
    assert rows(out)[0]["item"] == "59"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("votes.csv", "--gold", "truth.csv"), "preference-net scores items"),
        (("votes.csv", "--items", "truth.csv"), "texts for --preferences"),
        (("votes.csv", "--preferences", "p.csv"), "end the name in .jsonl"),
        (("ratings.csv", "--type", "numbers", "--preferences", "p.jsonl"), "is for pairs"),
        (("ratings.csv", "--type", "ordered"), "train with --type labels"),
        (("ratings.csv", "-m", "raykar-regression", "--type", "labels"), "--type numbers"),
    ],
)
def test_options_of_another_kind_are_refused(cli, problem, monkeypatch, options, words):
    monkeypatch.chdir(problem)
    code, _, err = cli("train", "x.npy", *options, "-o", "model")
    assert code == 2
    assert words in err
    assert not (problem / "model").exists()


def test_predict_refuses_what_only_classes_have(cli, problem):
    options = ("--type", "numbers", "-o", problem / "model")
    assert cli("train", problem / "x.npy", problem / "ratings.csv", *options).code == 0
    code, _, err = cli("predict", problem / "model", problem / "new.npy", "--soft")
    assert code == 2
    assert "are for classes, and raykar-regression predicts numbers" in err
