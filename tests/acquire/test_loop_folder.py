from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.scripted_campaign import forked, make_inbox, state_of, take_files

import wisecrowd
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.loop_folder import HOLDER, LoopFolder, only_loop
from wisecrowd.core.exceptions import DataError

TABLE = "task,worker,label\nt1,ann,x\nt2,ann,y\nt1,bob,x\n"


class Loop:
    """A folder with its campaign and what was noted."""

    def __init__(self, folder):
        self.folder, self.notes = folder, []
        self.campaign = Campaign(["t1", "t2", "t3"], path=folder / "campaign.db", stop=None)
        self.files = LoopFolder(folder, self.campaign, self.notes.append, n_queries=2)

    def put(self, name, content):
        path = self.folder / "inbox" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def names(self, place):
        return sorted(path.name for path in (self.folder / place).iterdir())


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path)
    yield made
    made.campaign.close()


def test_a_file_is_taken_when_it_is_complete(loop):
    path = loop.put("a.csv", TABLE[:30])
    loop.files.step()  # first look
    path.write_text(TABLE)  # it was still being written
    loop.files.step()
    assert loop.campaign.n_answers == 0
    loop.files.step()
    assert loop.campaign.labels.n_annotations == 3
    assert loop.names("inbox") == []
    assert loop.names("done") == ["a.csv"]
    assert "3 answers, 3 new" in loop.notes[-1]


def test_answers_count_in_the_order_of_rows(loop):
    loop.put("a.csv", "task,worker,label\nt2,bob,y\nt1,ann,x\n")
    loop.files.receive()
    loop.files.receive()
    rows = loop.campaign._store.rows("SELECT task, worker FROM answers ORDER BY row")
    assert rows == [(1, 0), (0, 1)]


def test_the_same_file_again_adds_nothing(loop):
    for _ in range(2):
        loop.put("a.csv", TABLE)
        loop.files.receive()
        loop.files.receive()
    assert loop.campaign.n_answers == 3
    assert loop.names("done") == ["2-a.csv", "a.csv"]


def test_an_old_file_again_does_not_undo_a_correction(loop):
    for name, content in (("a", TABLE), ("b", "task,worker,label\nt1,ann,y\n"), ("c", TABLE)):
        loop.put(f"{name}.csv", content)
        loop.files.receive()
        loop.files.receive()
    columns = loop.campaign.labels.to_dict()
    told = dict(zip(zip(columns["task"], columns["worker"], strict=True), columns["label"],
                    strict=True))  # fmt: skip
    assert told["t1", "ann"] == "y"
    assert loop.campaign.n_answers == 4


def test_a_file_that_was_committed_but_not_moved_is_harmless(loop, monkeypatch):
    loop.put("a.csv", TABLE)
    loop.files.receive()
    with monkeypatch.context() as crashing:
        crashing.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            loop.files.receive()
    assert loop.names("inbox") == ["a.csv"]
    again = LoopFolder(loop.folder, loop.campaign, loop.notes.append)
    again.receive()
    assert again.receive() == 0
    assert loop.campaign.n_answers == 3
    assert loop.names("done") == ["a.csv"]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("task,worker,label\nt1,ann,x\nt9,ann,x\n", "t9"),
        ("task,worker,label\n", "no rows"),
        ("left,right\na,b\n", ""),
        (b"\xff\xfe\x00\x01", ""),
        ("", ""),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(loop, content, word):
    loop.put("bad.csv", content)
    loop.files.step()
    loop.files.step()
    assert loop.campaign.n_answers == 0  # all of a file or nothing
    assert loop.names("inbox") == []
    assert loop.names("refused") == ["bad.csv", "bad.csv.reason.txt"]
    reason = (loop.folder / "refused" / "bad.csv.reason.txt").read_text()
    assert word in reason
    assert str(loop.folder) not in reason


def test_unfinished_files_and_links_stay(loop, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text(TABLE)
    loop.put(".hidden.csv", TABLE)
    loop.put("a.csv.part", TABLE)
    (loop.folder / "inbox" / "link.csv").symlink_to(secret)
    (loop.folder / "inbox" / "folder.csv").mkdir()
    for _ in range(3):
        loop.files.step()
    assert loop.campaign.n_answers == 0
    assert len(loop.names("inbox")) == 4


def test_a_full_disk_keeps_the_file(loop, monkeypatch):
    loop.put("a.csv", TABLE)
    loop.files.step()
    with monkeypatch.context() as full:
        full.setattr(loop.campaign, "tell_many",
                     lambda _: (_ for _ in ()).throw(CampaignError("disk is full")))  # fmt: skip
        loop.files.step()
        loop.files.step()
    assert loop.names("inbox") == ["a.csv"]
    assert sum("disk is full" in note for note in loop.notes) == 1  # noted once
    loop.files.step()
    assert loop.names("done") == ["a.csv"]


def test_the_outbox_has_the_next_queries(loop):
    loop.files.step()
    place = loop.folder / "outbox" / "next.csv"
    first = place.read_text().splitlines()
    assert first[0] == "task,worker,score,reason"
    assert len(first) == 3
    assert loop.campaign.open_queries() == []  # nothing is leased
    assert not loop.files.publish()  # no new answer
    loop.campaign.tell_many([(task, "ann", "x") for task in ("t1", "t2")])
    loop.files._rest_until = 0.0
    assert loop.files.publish()
    assert place.read_text().splitlines()[1].startswith("t3,,")  # cover first


def test_preview_is_what_ask_returns(loop):
    loop.campaign.tell_many([("t1", "ann", "x"), ("t2", "ann", "y")])
    workers = ["ann", "bob"]
    loop.campaign.ask(1, workers)  # workers are known now
    shown = loop.campaign.preview(2, workers)
    asked = loop.campaign.ask(2, workers)
    assert [one[1:] for one in shown] == [one[1:] for one in asked]


def test_a_lease_survives_a_clock_set_back_for_its_time_only(monkeypatch):
    import time

    now = time.time()
    campaign = Campaign(["t1"], max_labels=1, lease_seconds=60)
    monkeypatch.setattr(time, "time", lambda: now + 1e9)  # the clock is wrong, then set back
    campaign.ask(1, workers=["ann"])
    monkeypatch.setattr(time, "time", lambda: now)
    assert len(campaign.open_queries()) == 1
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert campaign.open_queries() == []


def test_a_second_loop_is_refused_and_a_killed_one_is_taken_over(tmp_path):
    notes: list[str] = []
    with only_loop(tmp_path, notes.append):
        holder = json.loads((tmp_path / HOLDER).read_text())
        assert holder["pid"] == os.getpid()
        with (
            pytest.raises(DataError, match=f"process {os.getpid()}"),
            only_loop(tmp_path, notes.append),
        ):
            pass
    with pytest.raises(ValueError, match="an error"), only_loop(tmp_path, notes.append):
        raise ValueError("an error")
    with only_loop(tmp_path, notes.append):
        assert notes == []
    source = str(Path(wisecrowd.__file__).parents[1])
    held = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; from pathlib import Path\n"
         "from wisecrowd.acquire.loop_folder import only_loop\n"
         f"with only_loop(Path({str(tmp_path)!r}), print):\n"
         "    print('held', flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    try:
        assert held.stdout is not None
        assert held.stdout.readline() == b"held\n"
        with (
            pytest.raises(DataError, match=f"process {held.pid}"),
            only_loop(tmp_path, notes.append),
        ):
            pass
    finally:
        held.send_signal(signal.SIGKILL)
        held.communicate()
    with only_loop(tmp_path, notes.append):
        assert "was killed" in notes[-1]


def test_unfinished_writes_of_a_killed_loop_are_removed(loop, monkeypatch):
    loop.put("bad.csv", "")
    loop.files.receive()
    with monkeypatch.context() as killed:  # nothing is cleaned up, as after SIGKILL
        killed.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        killed.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            loop.files.receive()
    assert any(name.endswith(".tmp") for name in loop.names("refused"))
    again = LoopFolder(loop.folder, loop.campaign, loop.notes.append)
    again.receive()
    again.receive()
    assert loop.names("refused") == ["bad.csv", "bad.csv.reason.txt"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_killed_loop_is_continued(tmp_path):
    make_inbox(tmp_path / "whole")
    n_steps = take_files(tmp_path / "whole")
    expected = state_of(tmp_path / "whole" / "campaign.db")["answers"]
    assert len(expected) == 36  # one of four files is refused
    for number, kill_at in enumerate(range(2, n_steps, n_steps // 4)):
        folder = tmp_path / str(number)
        make_inbox(folder)
        assert forked(lambda at=kill_at, place=folder: take_files(place, at)) == -signal.SIGKILL
        assert forked(lambda place=folder: take_files(place)) == 0
        assert state_of(folder / "campaign.db")["answers"] == expected
        assert sorted(path.name for path in (folder / "done").iterdir()) == [
            "0.csv", "2.csv", "3.csv"
        ]  # fmt: skip
