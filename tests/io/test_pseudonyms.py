from __future__ import annotations

import hashlib
import hmac
import itertools
import os

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.pseudonyms import PSEUDONYM, hide_ids, pseudonym, pseudonymize, read_key

KEY, OTHER = b"0123456789abcdef", b"0123456789abcdeg"


@pytest.fixture
def labels():
    return wc.CrowdLabels.from_arrays(
        [1, 1, 1, 2, 2, 3],
        ["ann@x.org", "bob", "cem", "bob", "ann@x.org", "cem"],
        list("abaabb"),
        weight=[1, 2, 3, 4, 5, 6],
        worker_kind={"ann@x.org": "human", "bob": "human", "cem": "model"},
        duration=[1.0, 2, 3, 4, 5, 6],
    )


def rows(labels):
    return sorted(zip(*(column.tolist() for column in labels.to_dict().values()), strict=True))


def test_it_is_the_keyed_hash():
    digest = hmac.new(KEY, b"wisecrowd worker\0" + "Zoë".encode(), hashlib.sha256).digest()
    text = pseudonym("Zoë", KEY).removeprefix("w-")
    bits = "".join(f"{'abcdefghijklmnopqrstuvwxyz234567'.index(c):05b}" for c in text)
    assert bits == "".join(f"{byte:08b}" for byte in digest[:10])


def test_the_same_key_gives_the_same_pseudonym_and_another_does_not():
    assert pseudonym("ann", KEY) == pseudonym("ann", KEY)
    assert pseudonym(7, KEY) == pseudonym("7", KEY)
    assert pseudonym("ann", KEY) != pseudonym("ann", OTHER)
    assert pseudonym("ann", KEY) != pseudonym("bob", KEY)
    assert PSEUDONYM.fullmatch(pseudonym("\udcff", KEY))


def test_only_the_workers_change(labels):
    hidden = pseudonymize(labels, KEY)
    real = {pseudonym(worker, KEY): worker for worker in labels.workers.tolist()}
    named = [(row[0], real[row[1]], *row[2:]) for row in rows(hidden)]
    assert sorted(named) == rows(labels)
    assert hidden.workers.tolist() == sorted(real)
    order = np.lexsort((hidden.worker, hidden.task))
    assert order.tolist() == list(range(6))  # sorted by task and worker, as always
    assert hidden.tasks.tolist() == labels.tasks.tolist()


def test_results_are_those_of_the_workers_themselves(labels):
    plain = wc.aggregation.DawidSkene().fit(labels)
    hidden = wc.aggregation.DawidSkene().fit(wc.pseudonymize(labels, KEY))
    assert hidden.labels_.tolist() == plain.labels_.tolist()
    assert hidden.probas_ == pytest.approx(plain.probas_, abs=1e-12)
    accuracy = dict(zip(hidden.workers_, hidden.worker_accuracy_, strict=True))
    for worker, value in zip(plain.workers_, plain.worker_accuracy_, strict=True):
        assert accuracy[pseudonym(worker, KEY)] == pytest.approx(value, abs=1e-12)


def test_notes_do_not_give_workers_away():
    with pytest.warns(wc.core.exceptions.WisecrowdWarning, match="ann@x"):
        labels = wc.CrowdLabels.from_arrays([1, 1], ["ann@x.org", "Ann@x.org"], ["a", "b"])
    assert any("ann@x.org" in note for note in labels.notes)
    hidden = pseudonymize(labels, KEY)
    assert not any("nn@x" in note for note in hidden.notes)
    assert any(pseudonym("ann@x.org", KEY) in note for note in hidden.notes)


@pytest.mark.parametrize("worker", ["it's", 'say "x"', "a\\b", "é", "a\nb"])
@pytest.mark.parametrize("spelling", [repr, ascii])
def test_ids_are_found_however_they_are_quoted(worker, spelling):
    workers = np.array([worker, "other"], dtype=object)
    text = f"worker {spelling(worker)} and 'somebody' else"
    assert hide_ids(text, workers, KEY) == f"worker '{pseudonym(worker, KEY)}' and 'somebody' else"


def test_keys(tmp_path, monkeypatch, labels):
    (tmp_path / "key").write_bytes(KEY + b"\n")
    monkeypatch.setenv("SECRET", KEY.decode())
    assert read_key(str(tmp_path / "key")) == read_key("env:SECRET") == KEY
    (tmp_path / "short").write_text("hunter2")
    for place in (str(tmp_path / "short"), "env:SHORT"):
        monkeypatch.setenv("SHORT", "hunter2")
        with pytest.raises(ParameterError, match="at least 16 bytes") as caught:
            read_key(place)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(ParameterError, match="GONE of the pseudonyms is not set"):
        read_key("env:GONE")
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_key("the secret itself, by mistake")
    assert "by mistake" not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(ParameterError):
        pseudonymize(labels, b"")


def test_two_workers_are_never_made_one(labels, monkeypatch):
    monkeypatch.setattr("wisecrowd.io.pseudonyms.pseudonym", lambda worker, key: "w-same")
    with pytest.raises(DataError, match="same pseudonym"):
        pseudonymize(labels, KEY)


def test_pseudonyms_look_alike():
    made = [pseudonym(n, KEY) for n in range(500)]
    assert len(set(made)) == 500
    letters = set(itertools.chain.from_iterable(name[2:] for name in made))
    assert letters == set("abcdefghijklmnopqrstuvwxyz234567")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero")
def test_a_key_without_an_end_is_refused():
    with pytest.raises(ParameterError, match="longer than 65536 bytes"):
        read_key("/dev/zero")
    with pytest.raises(ParameterError, match="write env:NAME"):
        read_key("env:")
