"""train and predict with features in every form; ids go all the way."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

TASKS = [f"t{i:02}" for i in range(40)]
EMBED = """
import numpy as np

VOCABULARY = ("good", "bad", "film")
NUMBER = 3

def count(texts):
    return np.array([[text.split().count(word) for word in VOCABULARY] for text in texts], float)

def fail(texts):
    raise RuntimeError("no model")
"""


@pytest.fixture
def problem(tmp_path, monkeypatch):
    """Forty sentences, good or bad, with three workers; rows of features are in another order."""
    rng = np.random.default_rng(0)
    good = np.arange(40) % 2
    order = rng.permutation(40)
    texts = [("good " if z else "bad ") * int(rng.integers(1, 4)) + "film" for z in good]
    X = np.array([[t.count("good"), t.count("bad"), 1.0] for t in texts])
    rows = [
        f"{TASKS[i]},{worker},{'yes' if good[i] ^ (rng.random() < error) else 'no'}"
        for i in range(40)
        for worker, error in (("ann", 0.05), ("bob", 0.2), ("cem", 0.3))
    ]
    (tmp_path / "answers.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    (tmp_path / "own_embedding.py").write_text(EMBED)
    monkeypatch.chdir(tmp_path)
    ids = [TASKS[i] for i in order]
    return tmp_path, X[order], [texts[i] for i in order], ids


def write(kind, X, texts, ids):
    """Write the features in one form; return the path and the options to read them."""
    table = pa.table({"id": ids, "text": texts, "vector": X.tolist()})
    if kind == "npy":
        np.save("x.npy", X)
        Path("ids.txt").write_text("\n".join(ids))
        return "x.npy", ["--ids", "ids.txt"]
    if kind == "npz":
        np.savez("x.npz", X=X, ids=ids)
        return "x.npz", []
    if kind == "sparse":
        sparse.save_npz("x.npz", sparse.csr_array(X))
        np.save("ids.npy", ids)
        return "x.npz", ["--ids", "ids.npy"]
    if kind == "parquet":
        pq.write_table(table, "x.parquet")
        return "x.parquet", []
    if kind == "folder":
        Path("data").mkdir(exist_ok=True)
        with pa.ipc.new_stream("data/data-00000-of-00001.arrow", table.schema) as writer:
            writer.write_table(table)
        for name in ("state.json", "dataset_info.json"):
            Path(f"data/{name}").write_text("{}")
        return "data", []
    if kind == "csv of text":
        lines = [f"{task},{text}\n" for task, text in zip(ids, texts, strict=True)]
        Path("x.csv").write_text("id,text\n" + "".join(lines))
        return "x.csv", ["--embed", "own_embedding:count"]
    Path("x.txt").write_text("\n".join(texts) + "\n")
    Path("ids.txt").write_text("\n".join(ids))
    return "x.txt", ["--embed", "own_embedding:count", "--ids", "ids.txt"]


KINDS = ["npy", "npz", "sparse", "parquet", "folder", "csv of text", "txt"]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_go_from_the_features_to_the_predictions(cli, rows, problem, kind):
    _, X, texts, ids = problem
    path, options = write(kind, X, texts, ids)
    done = cli("train", path, "answers.csv", "-o", "model", "-m", "raykar", "--json", *options)
    assert done.code == 0, done.err
    embed = [word for word in options[:2] if word.startswith("--embed") or ":" in word]
    assert json.loads(done.out)["next"].split()[4:-2] == embed
    found = cli("predict", "model", path, *options)
    assert found.code == 0, found.err
    table = rows(found.out)
    assert [row["task"] for row in table] == ids
    expected = ["yes" if "good" in text else "no" for text in texts]
    assert [row["label"] for row in table] == expected


def test_a_network_learns_from_sparse_features(cli, problem):
    pytest.importorskip("torch")
    _, X, texts, ids = problem
    path, options = write("sparse", X, texts, ids)
    method = ("-m", "ccem", "-p", "module=linear", "-p", "lr=0.1", "--epochs", "5")
    (problem[0] / "truth.csv").write_text("task,label\n0,yes\n1,no\n")
    valid = ("--valid", path, "--valid-truth", "truth.csv")
    done = cli("train", path, "answers.csv", "-o", "model", *method, *options, *valid)
    assert done.code == 0, done.err
    assert cli("predict", "model", path, *options).code == 0


def test_what_was_chosen_is_said(cli, problem):
    _, X, texts, ids = problem
    path, _ = write("parquet", X, texts, ids)
    done = cli("train", path, "answers.csv", "-o", "model", "-m", "raykar")
    assert "features of x.parquet: vector; not used: text" in done.err
    both = cli("predict", "model", path, "--feature-columns", "vector, text")
    assert both.code == 3
    assert "'text' of x.parquet is no feature: row 0" in both.err
    assert "--feature-columns" in both.err


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        ([], 3, "x.csv is no feature: row 0"),
        (["--embed", "own_embedding"], 2, "give package.module:function"),
        (["--embed", "own_embeding:count"], 2, "own_embeding cannot be imported"),
        (["--embed", "own_embedding:cont"], 2, "has no attribute 'cont'"),
        (["--embed", "own_embedding:NUMBER"], 2, "not a function"),
        (["--embed", "own_embedding:fail"], 3, "RuntimeError: no model"),
        (["--embed", "own_embedding:count", "--feature-columns", "txt"], 2, "no column 'txt'"),
    ],
)
def test_texts_that_cannot_be_embedded_are_one_sentence(cli, problem, options, code, reason):
    path, _ = write("csv of text", *problem[1:])
    before = list(sys.path)
    found = cli("train", path, "answers.csv", "-o", "model", "-m", "raykar", *options)
    assert found.code == code
    assert reason in found.err
    assert len(found.err.splitlines()) == 1
    assert sys.path == before


def test_ids_that_are_not_those_of_the_labels_are_named(cli, problem):
    _, X, texts, ids = problem
    np.savez("x.npz", X=X, ids=[*ids[:-1], "other"])
    found = cli("train", "x.npz", "answers.csv", "-o", "model", "-m", "raykar")
    assert found.code == 3
    assert f"1 of 40 labelled tasks have no features, such as '{ids[-1]}'" in found.err
    write("txt", X, texts, ids)
    (problem[0] / "ids.txt").write_text("a\nb\n")
    options = ("--ids", "ids.txt", "--embed", "own_embedding:count")
    found = cli("train", "x.txt", "answers.csv", "-o", "model", "-m", "raykar", *options)
    assert found.code == 3
    assert "ids.txt has 2 ids and the features have 40 rows" in found.err
