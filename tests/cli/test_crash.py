"""Killed, out of disk or out of memory in the middle: what was there stays, or the new is whole.

A few points of each kind; ``python -m benchmarks.trust.crash`` loops over hundreds.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from tests.support.faults import Fault, run_with, temporary_files, whole_files

from wisecrowd.core.exceptions import DataError
from wisecrowd.storage import read_manifest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults need fork")

OUTPUTS = ("-o", "labels.csv", "--workers", "workers.parquet", "--save", "model")
OLD = ["aggregate", "answers.csv", *OUTPUTS, "-m", "majority-vote", "-q"]
NEW = ["aggregate", "answers.csv", *OUTPUTS, "-m", "one-coin", "--soft", "-q"]


@pytest.fixture
def before(answers, tmp_path, cli, monkeypatch):
    """Make a folder with the outputs of an older run; importing happens here, before the forks."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    folder = tmp_path / "before"
    folder.mkdir()
    shutil.move(answers, folder / "answers.csv")
    monkeypatch.chdir(folder)
    assert cli(*NEW).code == 0
    assert cli(*OLD).code == 0
    return folder


@pytest.fixture
def struck(before, tmp_path):
    """Return a function: run the new command with a fault, return outcome, folder and versions."""
    after = tmp_path / "after"
    shutil.copytree(before, after)
    whole = run_with(None, NEW, after)
    assert (whole.code, whole.err) == (0, "")
    old, new = versions(before), versions(after)
    assert not [unit for unit in new if unit != "answers.csv" and old[unit] == new[unit]]

    def strike(kind, at):
        work = tmp_path / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(before, work)
        outcome = run_with(Fault(kind, at), NEW, work)
        found = versions(work)
        assert found.keys() == new.keys()
        torn = [unit for unit in found if found[unit] not in (old[unit], new[unit])]
        assert torn == []
        return outcome, work, {unit for unit in found if found[unit] == new[unit]}

    return strike, whole


def versions(folder: Path) -> dict[str, dict[str, str]]:
    """Return the files of everything that appears in one step: a file or a folder."""
    found: dict[str, dict[str, str]] = {}
    for name, digest in whole_files(folder).items():
        found.setdefault(Path(name).parts[0], {})[name] = digest
    return found


def test_killed_at_any_step(struck):
    strike, whole = struck
    n_steps = whole.steps
    assert n_steps > 40
    seen = set()
    for step in (*range(1, n_steps - 10, 6), *range(n_steps - 10, n_steps + 1)):
        outcome, work, new = strike("kill", step)
        assert outcome.code == -signal.SIGKILL
        seen.add(len(new))
        for unit in ("labels.csv", "workers.parquet", "model"):
            if (unit in new) != (f"{unit}.manifest.json" in new):
                with pytest.raises(DataError, match="does not belong to"):
                    read_manifest(work / unit)
    assert len(seen) > 3  # some died between two renames


def test_killed_in_the_middle_of_a_file(struck):
    for byte in (1, 60, 200):
        outcome, _, new = struck[0]("kill at byte", byte)
        assert outcome.code == -signal.SIGXFSZ
        assert new == {"answers.csv"}


def test_a_full_disk_is_one_sentence_and_changes_nothing(struck):
    strike, whole = struck
    faults = [("full", write) for write in (1, whole.writes // 2, whole.writes)]
    faults += [("full at byte", byte) for byte in (1, 150, 1000)]
    for kind, at in faults:
        outcome, work, new = strike(kind, at)
        assert outcome.code == 3
        assert outcome.err.startswith("wisecrowd: Cannot write ")
        assert outcome.err.count("\n") == 1
        assert new == {"answers.csv"}
        assert temporary_files(work) == []


def test_no_memory_is_one_sentence_and_leaves_nothing_behind(struck):
    for call in (30, 150, 300, 450):
        outcome, work, _ = struck[0]("memory", call)
        assert outcome.code == 3
        assert outcome.err == "wisecrowd: There is not enough memory for this; use less data.\n"
        assert temporary_files(work) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_device_without_room(before):
    command = ["/dev/full" if given == "labels.csv" else given for given in NEW]
    old = whole_files(before)
    outcome = run_with(None, command, before)
    assert (outcome.code, outcome.err.count("\n")) == (3, 1)
    assert "the disk is full" in outcome.err
    assert whole_files(before) == old
    assert temporary_files(before) == []
