from __future__ import annotations

import sqlite3

import pytest

from wisecrowd.acquire import service
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import VERSION
from wisecrowd.acquire.service import Progress, progress_of

GOLD = {task: "ab"[task % 2] for task in range(60)}


def play(campaign: Campaign, n: int) -> None:
    """Answer ``n`` queries; the worker dan is always wrong."""
    for _ in range(n // 20):
        for query in campaign.ask(20, workers=["ann", "bob", "cem", "dan"]):
            right = query.worker != "dan"
            campaign.tell(query.task, query.worker, "ab"[(query.task + (not right)) % 2])


@pytest.fixture
def campaign(tmp_path):
    with Campaign(
        range(80), gold=GOLD, target=0.99, path=tmp_path / "campaign.db", stop=None
    ) as made:
        play(made, 140)
        yield made


def test_accuracy_over_time_and_judged_workers(campaign, tmp_path):
    shown = progress_of(campaign)
    last = shown["history"][-1]
    assert 0.5 < shown["mean_confidence"] <= 1
    assert last["expected"] == shown["mean_confidence"]
    assert last["gold"] == shown["gold_accuracy"] > 0.8
    workers = {one["worker"]: one for one in shown["workers"]}
    assert workers["dan"]["poor"]
    assert not workers["ann"]["poor"]
    assert workers["dan"]["agreement"] < 0.4 < workers["ann"]["agreement"]
    assert shown["labels"] == campaign.labels.n_annotations
    assert len(shown["next"]) == service.NEXT
    assert all(one["reason"] for one in shown["next"])
    with Campaign.open(tmp_path / "campaign.db") as again:  # the history is stored
        assert progress_of(again)["history"] == shown["history"]


def test_an_empty_campaign():
    shown = progress_of(Campaign(["t1"]))
    assert (shown["mean_confidence"], shown["history"], shown["workers"]) == (None, [], [])


def test_the_page_does_not_compute_all_the_time(campaign, monkeypatch):
    calls: list[int] = []
    clock = [0.0]

    def slow(_: Campaign) -> dict[str, int]:
        calls.append(1)
        clock[0] += 2.0
        return {"n": len(calls)}

    monkeypatch.setattr(service, "progress_of", slow)
    monkeypatch.setattr(service.time, "monotonic", lambda: clock[0])
    shown = Progress(campaign)
    assert shown.now() == shown.now() == {"n": 1}
    clock[0] += service.REST * 2.0
    assert shown.now() == {"n": 2}


def test_databases_of_the_first_version_go_on(campaign, tmp_path):
    records = campaign.rounds()
    campaign.close()
    connection = sqlite3.connect(tmp_path / "campaign.db")
    for column in ("expected", "gold"):
        connection.execute(f"ALTER TABLE rounds DROP COLUMN {column}")
    connection.execute("PRAGMA user_version=1")
    connection.commit()
    connection.close()
    with Campaign.open(tmp_path / "campaign.db") as again:
        assert again._store.version() == VERSION
        assert [one.n_answers for one in again.rounds()] == [one.n_answers for one in records]
        assert {one.expected for one in again.rounds()} == {None}
        play(again, 20)
        assert again.stop_report().answers > records[-1].n_answers
