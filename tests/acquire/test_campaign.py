from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.support.scripted_campaign import acknowledged, in_child, play, state_of

import wisecrowd as wc
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.core.exceptions import DataError, ParameterError

ROOT = Path(__file__).parents[2]


def filled(n_tasks=40, n_answers=120, path=None, **options) -> Campaign:
    """Return a campaign that has asked and been told ``n_answers``; one worker is always wrong."""
    campaign = Campaign(range(n_tasks), path=path, **options)
    workers = list("abcdef")
    while campaign.labels.n_annotations < n_answers:
        for query in campaign.ask(5, workers=workers):
            right = query.worker != "f"
            campaign.tell(query.task, query.worker, (query.task + (not right)) % 3)
    return campaign


def test_ask_tell_until_the_end():
    campaign = filled()
    assert campaign.labels.n_annotations == 120
    assert (campaign.fit("one-coin").labels_ == np.arange(40) % 3).mean() > 0.9
    assert campaign.stop_report().answers == 120
    assert campaign.open_queries() == []


def test_leases_count_and_are_not_asked_twice():
    campaign = Campaign(["t1", "t2"], max_labels=1)
    first = campaign.ask(5, workers=["ann", "bob"])
    assert sorted(query.task for query in first) == ["t1", "t2"]
    assert campaign.ask(5, workers=["ann", "bob"]) == []
    assert campaign.release(first[0])
    assert not campaign.release(first[0])
    (again,) = campaign.ask(5, workers=["ann", "bob"])
    assert again.task == first[0].task
    assert [query.id for query in campaign.open_queries()] == [first[1].id, again.id]
    assert campaign.open_queries(again.worker)


def test_leases_expire_and_late_answers_count(monkeypatch):
    campaign = Campaign(["t1"], max_labels=1, lease_seconds=60)
    campaign.ask(1, workers=["ann"])
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert campaign.open_queries() == []
    assert campaign.tell("t1", "ann", "x")
    assert campaign.labels.n_annotations == 1
    monkeypatch.setattr(time, "time", lambda: now - 1e6)  # the clock jumps back
    assert campaign.ask(1, workers=["bob"]) == []  # the task is full
    assert campaign.stop_report().reason == "max_labels"


def test_redelivery_and_corrections():
    campaign = Campaign(["t1", "t2"], classes=["x", "y"])
    assert campaign.tell("t1", "ann", "x", id=7)
    assert not campaign.tell("t1", "ann", "x", id=7)
    assert not campaign.tell("t1", "ann", "x")  # nothing new
    assert campaign.tell("t1", "ann", "y", id=8)  # the last counts
    assert campaign.labels.to_dict()["label"].tolist() == ["y"]
    assert not campaign.tell("t1", "ann", "x", id=7)  # an old delivery, again
    assert campaign.labels.to_dict()["label"].tolist() == ["y"]
    assert campaign.tell("t1", "ann", None)
    assert campaign.labels.n_annotations == 0
    assert not campaign.tell("t2", "bob", None)
    assert campaign.stop_report().answers == 3


def test_tell_many_is_all_or_nothing():
    campaign = Campaign(["t1", "t2"], classes=["x", "y"])
    with pytest.raises(DataError, match="not among the classes"):
        campaign.tell_many([("t1", "ann", "x"), ("t2", "new worker", "z")])
    assert campaign.labels.n_annotations == 0
    assert campaign.labels.n_workers == 0
    frame = {"task": ["t1", "t2"], "worker": ["ann", "bob"], "label": ["x", "y"], "id": [1, 2]}
    import pyarrow as pa

    assert campaign.tell_many(pa.table(frame)) == 2
    assert campaign.tell_many(pa.table(frame)) == 0


def test_unknown_tasks_and_labels():
    campaign = Campaign(["task 1"], classes=["cat", "dog"])
    with pytest.raises(DataError, match="did you mean 'task 1'"):
        campaign.tell("task 2", "ann", "cat")
    with pytest.raises(DataError, match=r"did you mean 'cat'.*'cat', 'dog'"):
        campaign.tell("task 1", "ann", "cats")
    with pytest.raises(DataError, match="of type str"):
        Campaign(["1"]).tell(1, "ann", "x")
    free = Campaign(["t1"], open_tasks=True)
    assert free.tell("t2", "ann", "x")
    assert free.tell("t2", "bob", "a new class")
    assert free.labels.n_tasks == 2
    assert {query.task for query in free.ask(9, workers=["cem"])} == {"t1", "t2"}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"tasks": []}, ParameterError, "empty"),
        ({"budget": -3}, ParameterError, "budget"),
        ({"min_labels": 3, "max_labels": 1}, ParameterError, "not below"),
        ({"policy": "uncertian"}, ParameterError, "did you mean 'uncertain'"),
        ({"gold": {"t9": "x"}}, DataError, "not in the campaign"),
        ({"gold": {"t1": "z"}, "classes": ["x"]}, DataError, "not among the classes"),
        ({"target": 0.9}, ParameterError, "held-out gold"),
        ({"cost": {"ann": 0}}, ParameterError, "cost"),
        ({"classes": [None]}, DataError, "no id"),
    ],
)
def test_bad_settings(options, error, words):
    with pytest.raises(error, match=words):
        Campaign(**{"tasks": ["t1", "t2"], **options})


def test_budget_counts_answers_and_leases():
    campaign = Campaign(range(10), budget=7, cost={"ann": 2.0})
    queries = campaign.ask(10, workers=["ann", "bob"])
    assert 0 < len(queries) <= 7
    for query in queries:
        campaign.tell(query.task, query.worker, "x")
    while more := campaign.ask(10, workers=["bob"]):
        for query in more:
            campaign.tell(query.task, query.worker, "x")
    report = campaign.stop_report()
    assert (report.cost, report.reason) == (7, "budget")


def test_small_campaigns_end():
    one = Campaign(["t"])
    assert len(one.ask(3, workers=["ann"])) == 1
    one.tell("t", "ann", "x")
    assert one.ask(3, workers=["ann"]) == []
    assert one.stop_report(workers=["ann"]).reason == "nothing left"
    assert one.stop_report(workers=["ann", "bob"]).reason is None
    assert Campaign(["t"]).ask(2)[0].worker is None
    assert Campaign(["t"]).ask(2, workers=[]) == []


def test_constant_answers_stop_and_alternating_ones_do_not():
    same, turning = Campaign(range(30)), Campaign(range(30), classes=["x", "y"])
    for number in range(6):
        for task in range(30):
            same.tell(task, f"w{number}", "x")
            turning.tell(task, "only one", "xy"[number % 2])
            turning.tell((task + 15) % 30, "other", "yx"[number % 2])
        reasons = same.stop_report().reason, turning.stop_report().reason
        assert reasons[1] is None
        # Two labels per task, and a window of 50 answers.
        assert reasons[0] == ("flips" if number >= 1 else None)


def test_gold_questions_screen_new_workers():
    gold = {task: "xy"[task % 2] for task in range(8)}
    campaign = Campaign(range(50), classes=["x", "y"], gold=gold, gold_share=0.05)
    queries = campaign.ask(6, workers=["ann"])
    assert [query.reason for query in queries[:5]] == ["gold: screening"] * 5
    assert all(query.task in gold for query in queries[:5])
    for query in queries:
        campaign.tell(query.task, query.worker, "x")
    later = [query.task for query in campaign.ask(3, workers=["ann"])]
    assert not set(later) & {query.task for query in queries}
    fitted = campaign.fit("one-coin")
    assert [fitted.labels_[i] for i in range(8)] == list(gold.values())


def test_same_journal_and_seed_same_queries():
    first, second = filled(n_answers=60), filled(n_answers=60)
    assert first.ask(10, workers=list("abc")) == second.ask(10, workers=list("abc"))


# ------------------------------------------------------------------------------------ the database


def test_a_campaign_is_continued(tmp_path):
    path = tmp_path / "campaign.db"
    whole, parts = filled(n_answers=120), filled(n_answers=60, path=path)
    parts.close()
    with pytest.raises(DataError, match="other settings"):
        Campaign(range(41), path=path)
    with pytest.raises(DataError, match="other settings"):
        Campaign(range(1, 41), path=path)
    again = filled(n_answers=120, path=path)
    assert again.stop_report() == whole.stop_report()
    assert again.ask(10, workers=list("abc")) == whole.ask(10, workers=list("abc"))
    again.close()
    opened = Campaign.open(path)
    assert opened.labels.to_dict()["label"].tolist() == whole.labels.to_dict()["label"].tolist()
    with pytest.raises(DataError, match="holds no campaign"):
        Campaign.open(tmp_path / "other.db")


def test_settings_of_sqlite(tmp_path):
    campaign = Campaign(["t"], path=tmp_path / "campaign.db")
    run = campaign._store.connection.execute
    assert run("PRAGMA journal_mode").fetchone() == ("wal",)
    assert run("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_many_points_and_continued(tmp_path):
    n_answers = 18
    whole = tmp_path / "whole.db"
    n_statements = play(whole, n_answers)
    expected = state_of(whole)
    assert len(expected["answers"]) == n_answers
    struck = 0
    for number, kill_at in enumerate(np.linspace(1, n_statements, 16).astype(int).tolist()):
        path = tmp_path / f"{number}.db"
        code = in_child(path, n_answers, kill_at)
        struck += code == -9
        keys = [row[1] for row in state_of(path)["answers"]] if acknowledged(path) else []
        assert set(acknowledged(path)) <= {key.strip('"') for key in keys}  # nothing lost
        assert in_child(path, n_answers, None) == 0
        assert state_of(path) == expected  # nothing doubled, and the same bits
    assert struck >= 15


def test_two_processes_lose_and_double_nothing(tmp_path):
    path = tmp_path / "campaign.db"
    Campaign(range(40), path=path).close()
    code = (
        "import sys; from wisecrowd.acquire.campaign import Campaign\n"
        "c = Campaign.open(sys.argv[1])\n"
        "for t in range(40):\n"
        "    c.tell(t, sys.argv[2], t % 2, id=f'{sys.argv[2]} {t}')\n"
        "    c.tell(t, 'both', t % 2, id=f'both {t}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], env=environment)
        for name in ("one", "two")
    ]
    assert [process.wait() for process in started] == [0, 0]
    answers = state_of(path)["answers"]
    assert len(answers) == 120
    assert len({row[1] for row in answers}) == 120
    assert Campaign.open(path).labels.n_annotations == 120


def test_full_disk_changes_nothing(tmp_path):
    path = tmp_path / "campaign.db"
    campaign = filled(n_answers=20, path=path, n_tasks=60)
    before = campaign.labels.n_annotations
    pages = campaign._store.connection.execute("PRAGMA page_count").fetchone()[0]
    campaign._store.connection.execute(f"PRAGMA max_page_count={pages}")
    told = []

    def tell_many_workers():
        for number in range(5000):
            campaign.tell(number % 60, f"a worker with a long name {number}", 1)
            told.append(number)

    with pytest.raises(CampaignError, match="full"):
        tell_many_workers()
    assert campaign.labels.n_annotations == before + len(told)
    campaign._store.connection.execute("PRAGMA max_page_count=100000")
    assert campaign.tell(0, "after", 1)
    campaign.close()
    assert Campaign.open(path).labels.n_annotations == before + len(told) + 1


def test_a_damaged_database_is_refused(tmp_path):
    path = tmp_path / "campaign.db"
    filled(n_answers=100, path=path).close()
    content = bytearray(path.read_bytes())
    content[4096:9000] = os.urandom(9000 - 4096)
    path.write_bytes(bytes(content))
    with pytest.raises((DataError, CampaignError)):
        Campaign.open(path)
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(DataError, match="restore it"):
        Campaign.open(path)


def test_a_newer_database_is_refused(tmp_path):
    path = tmp_path / "campaign.db"
    Campaign(["t"], path=path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="version 99"):
        Campaign.open(path)


def test_names_of_the_package():
    assert set(wc.acquire.__all__) == set(dir(wc.acquire))
    assert wc.acquire.Campaign is Campaign
