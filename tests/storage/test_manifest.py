from __future__ import annotations

import hashlib
import json
import os
import platform
from datetime import UTC, datetime

import numpy as np
import pytest

from wisecrowd._version import __version__
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.storage.atomic import atomic_write, together
from wisecrowd.storage.manifest import (
    Manifest,
    file_sha256,
    manifest_path,
    output_sha256,
    read_manifest,
    write_manifest,
)


def test_describes_the_run(tmp_path):
    source = tmp_path / "answers.csv"
    source.write_bytes(b"task,worker,label\n" * 100_000)  # more than one piece
    before = datetime.now(UTC).replace(microsecond=0)
    manifest = Manifest.describe(
        method="dawid-skene",
        parameters={"tol": np.float64(1e-6), "max_iter": 100, "prior": None},
        seed=7,
        inputs=[source],
        command=["wisecrowd", "aggregate", "answers.csv"],
    )
    assert manifest.inputs == {str(source): hashlib.sha256(source.read_bytes()).hexdigest()}
    assert manifest.wisecrowd == __version__
    assert manifest.python == platform.python_version()
    assert manifest.numpy == np.__version__
    created = datetime.fromisoformat(manifest.created)
    assert created.utcoffset().total_seconds() == 0
    assert before <= created <= datetime.now(UTC)


def test_the_digest_is_the_standard_one(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")  # the example of FIPS 180-2
    assert file_sha256(tmp_path / "abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_goes_beside_the_output_and_comes_back(tmp_path):
    output = tmp_path / "labels.csv"
    manifest = Manifest.describe(method="majority-vote", parameters={"ties": "common"}, seed=1)
    path = write_manifest(output, manifest)
    assert path == tmp_path / "labels.csv.manifest.json" == manifest_path(output)
    assert json.loads(path.read_text())["method"] == "majority-vote"
    assert read_manifest(output) == manifest


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_it_tells_whether_the_output_is_its_own(tmp_path, kind):
    output = tmp_path / "labels"
    place = output / "a.npy" if kind == "folder" else output
    place.parent.mkdir(exist_ok=True)
    place.write_text("new")
    write_manifest(output, Manifest.describe(threads=3))
    found = read_manifest(output)
    assert found.output_sha256 == output_sha256(output)
    assert found.threads == 3
    place.write_text("other")
    with pytest.raises(DataError, match=r"does not belong to .*labels as it is now"):
        read_manifest(output)


def test_the_digest_is_that_of_the_output_that_waits_for_its_set(tmp_path):
    (tmp_path / "a").write_text("old")
    with together():
        with atomic_write(tmp_path / "a") as file:
            file.write("new")
        write_manifest(tmp_path / "a", Manifest())
    assert read_manifest(tmp_path / "a").output_sha256 == hashlib.sha256(b"new").hexdigest()


def test_what_could_change_the_bits_is_recorded(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    import scipy

    manifest = Manifest.describe(method="glad")
    assert manifest.hash_seed == "5"
    assert manifest.created == "1970-01-02T00:00:00+00:00"
    assert manifest.libraries["scipy"] == scipy.__version__
    assert platform.machine() in manifest.platform
    monkeypatch.delenv("PYTHONHASHSEED")
    assert Manifest().hash_seed == "random"


def test_parameters_become_valid_json(tmp_path):
    class Prior:
        def __repr__(self):
            return "Prior(2)"

    manifest = Manifest.describe(
        parameters={
            "a": np.array([[1, 2]]),
            "b": float("inf"),
            "c": Prior(),
            "d": {1: (np.int32(3), np.nan)},
            "e": np.bool_(True),
            "f": "ü",
        }
    )
    assert manifest.parameters == {
        "a": [[1, 2]],
        "b": "inf",
        "c": "Prior(2)",
        "d": {"1": [3, "nan"]},
        "e": True,
        "f": "ü",
    }
    write_manifest(tmp_path / "x", manifest)
    assert read_manifest(tmp_path / "x") == manifest


def test_a_pipe_gets_none(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert write_manifest(tmp_path / "pipe", Manifest()) is None
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_an_input_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"Cannot read .*gone\.csv: No such file"):
        Manifest.describe(inputs=[tmp_path / "gone.csv"])


@pytest.mark.parametrize("content", ["{", "[]", '{"method": "x"}', "\udcff"])
def test_a_damaged_manifest(tmp_path, content):
    manifest_path(tmp_path / "x").write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DataError, match="make the output again"):
        read_manifest(tmp_path / "x")


def test_a_missing_manifest(tmp_path):
    with pytest.raises(DataError, match="is it beside its output"):
        read_manifest(tmp_path / "x")


@pytest.mark.parametrize("given", ["9" * 12, "9" * 17, "9" * 40, "9" * 5000])
def test_a_time_that_no_calendar_has_is_refused(monkeypatch, given):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    with pytest.raises(ParameterError, match=r"SOURCE_DATE_EPOCH is 9+; give seconds since 1970"):
        Manifest.describe()
