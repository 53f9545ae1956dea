"""No output of a pseudonymised run names a worker, or holds the key."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd.io.pseudonyms import pseudonym

KEY = "correct horse battery staple"
WORKERS = [f"{name}@example.org" for name in
           ("ann", "bob", "cem", "dee", "eva", "fay", "gil", "hal")]  # fmt: skip
RARE = ["Ann@example.org", "ivy@example.org"]  # a twin, and both with fewer than five labels


@pytest.fixture
def crowd(table):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(40):
        truth = rng.integers(3)
        for worker in rng.permutation(WORKERS)[:4]:
            label = truth if rng.random() < 0.8 else rng.integers(3)
            rows.append((f"t{i}", worker, "abc"[label]))
        if i < 4:
            rows.append((f"t{i}", RARE[i % 2], "a"))
    return table("answers.csv", ["task", "worker", "label"], rows)


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "worker.key"
    path.write_text(KEY + "\n")
    return path


def assert_hidden(tmp_path, crowd, key, *texts):
    """Look into every file but the inputs, whatever its format."""
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file not in (crowd, key)]
    assert files
    contents = [file.read_bytes() for file in files] + [text.encode() for text in texts]
    for content in contents:
        assert b"@example" not in content
        assert KEY.encode() not in content


def test_aggregate(cli, crowd, key, tmp_path, rows):
    done = cli("aggregate", crowd, "-o", tmp_path / "l.csv", "--workers", tmp_path / "w.csv",
               "--save", tmp_path / "model", "--pseudonymize", key, "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert_hidden(tmp_path, crowd, key, done.out)
    names = {row["worker"] for row in rows(tmp_path / "w.csv")}
    assert names == {pseudonym(worker, KEY.encode()) for worker in WORKERS + RARE}
    manifest = json.loads((tmp_path / "l.csv.manifest.json").read_text())
    assert list(manifest["inputs"]) == [str(crowd)]  # not even a hash of the key


def test_convert_with_a_key_in_the_environment(cli, crowd, key, tmp_path, rows, monkeypatch):
    monkeypatch.setenv("WORKER_KEY", KEY)
    for name, place in (("a.csv", key), ("b.csv", "env:WORKER_KEY")):
        done = cli("convert", crowd, tmp_path / name, "--pseudonymize", place)
        assert done.code == 0, done.err
    assert_hidden(tmp_path, crowd, key)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert len(rows(tmp_path / "a.csv")) == len(rows(crowd))


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_audit_names_no_worker_with_few_labels(cli, crowd, key, tmp_path, form):
    done = cli("audit", crowd, "-o", tmp_path / "audit", "--pseudonymize", key, *form)
    assert done.code == 0, done.err
    assert_hidden(tmp_path, crowd, key, done.out)
    few = [pseudonym(worker, KEY.encode()) for worker in RARE]
    shown = done.out + "".join(file.read_text() for file in (tmp_path / "audit").iterdir())
    assert not any(name in shown for name in few)
    assert any(pseudonym(worker, KEY.encode()) in shown for worker in WORKERS)
    if form:
        assert json.loads(done.out)["n_withheld"] == 2
    else:
        assert "2 workers with fewer than 5 labels are not named" in done.err


def test_report_names_no_worker_with_few_labels_and_says_so(cli, crowd, key, tmp_path):
    pytest.importorskip("jinja2")
    done = cli("report", crowd, "-o", tmp_path / "report.html", "--pseudonymize", key, "--json")
    assert done.code == 0, done.err
    assert_hidden(tmp_path, crowd, key, done.out)
    page = (tmp_path / "report.html").read_text()
    assert "2 workers with fewer than 5 labels are left out of this page" in page
    for worker in WORKERS:
        assert pseudonym(worker, KEY.encode()) in page
    for worker in RARE:
        assert pseudonym(worker, KEY.encode()) not in page + done.out


def test_without_the_option_nothing_is_hidden(cli, crowd, tmp_path):
    pytest.importorskip("jinja2")
    assert cli("report", crowd, "-o", tmp_path / "report.html").code == 0
    page = (tmp_path / "report.html").read_text()
    assert RARE[0] in page
    assert "are left out of this page" not in page


def test_the_key_is_never_overwritten_nor_guessed(cli, crowd, key, tmp_path):
    key = key.rename(tmp_path / "key.csv")
    assert cli("convert", crowd, key, "--pseudonymize", key).code == 2
    assert key.read_text() == KEY + "\n"
    key.write_text("hunter2")
    done = cli("convert", crowd, tmp_path / "out.csv", "--pseudonymize", key)
    assert done.code == 2
    assert "at least 16 bytes" in done.err
    assert not (tmp_path / "out.csv").exists()
