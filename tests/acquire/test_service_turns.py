"""Requests take turns at the campaign, and answers that wait are stored together."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

pytest.importorskip("starlette")

from wisecrowd.acquire import service
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.service import Turns
from wisecrowd.core.exceptions import DataError

TASKS = [f"t{n}" for n in range(20)]


@pytest.fixture
def campaign(tmp_path):
    with Campaign(TASKS, path=tmp_path / "campaign.db") as made:
        yield made


@pytest.fixture
def commits(campaign):
    """Commits of the database from now on."""
    found: list[str] = []
    campaign._store.connection.set_trace_callback(
        lambda statement: found.append(statement) if statement == "COMMIT" else None
    )
    return found


def answer(task, worker, label="x"):
    return (task, worker, label, None, None)


def stored(campaign, deliveries) -> list:
    """Deliver at the same time; return what each got."""

    async def all_of_them():
        turns = Turns(campaign)
        return await asyncio.gather(*map(turns.store, deliveries), return_exceptions=True)

    return asyncio.run(all_of_them())


def test_answers_that_wait_are_one_transaction(campaign, commits):
    found = stored(campaign, [[answer(task, "ann")] for task in TASKS])
    assert found == [1] * len(TASKS)
    assert len(commits) == 2  # the first one alone, and those that came meanwhile
    assert campaign.n_answers == len(TASKS)


def test_a_refused_delivery_leaves_the_others_and_no_trace(campaign):
    wrong = [answer("t1", "new worker", "new class"), answer("nowhere", "ann")]
    first, refused, last = stored(campaign, [[answer("t1", "ann")], wrong, [answer("t2", "bob")]])
    assert (first, last) == (1, 1)
    assert isinstance(refused, DataError)
    assert "nowhere" in str(refused)
    assert campaign.labels.workers.tolist() == ["ann", "bob"]
    assert campaign.labels.classes.tolist() == ["x"]
    # Codes in memory are those of the database, also for whoever joins next.
    assert campaign.tell("t3", "new worker", "new class")
    with Campaign.open(campaign._store.path) as again:
        assert again.labels.to_dict().keys() == campaign.labels.to_dict().keys()
        assert again.labels.workers.tolist() == ["ann", "bob", "new worker"]


def test_an_unforeseen_error_is_that_of_its_delivery(campaign):
    class Odd:
        def __bool__(self):
            raise RuntimeError("odd")

        __eq__ = __bool__
        __hash__ = None

    first, odd, last = stored(
        campaign, [[answer("t1", "ann")], [answer(Odd(), "ann")], [answer("t2", "ann")]]
    )
    assert (first, last) == (1, 1)
    assert isinstance(odd, Exception)
    assert campaign.n_answers == 2


def test_a_full_disk_is_told_to_all(campaign, monkeypatch):
    def full(groups):
        raise CampaignError("full")

    monkeypatch.setattr(campaign, "tell_groups", full)
    found = stored(campaign, [[answer(task, "ann")] for task in TASKS[:3]])
    assert [type(one) for one in found] == [CampaignError] * 3


def test_a_transaction_has_an_end(campaign, commits, monkeypatch):
    monkeypatch.setattr(service, "MOST_TOGETHER", 5)
    assert stored(campaign, [[answer(task, "ann")] for task in TASKS]) == [1] * len(TASKS)
    assert len(commits) == 5
    assert stored(campaign, [[answer(task, "bob") for task in TASKS]]) == [20]


def test_answers_that_nobody_waits_for_any_more_do_not_stop_the_next(campaign, monkeypatch):
    monkeypatch.setattr(service, "MOST_TOGETHER", 1)

    async def leave():
        turns = Turns(campaign)
        async with turns._turn:
            gone = asyncio.create_task(turns.store([answer("t1", "ann"), answer("t2", "ann")]))
            stays = asyncio.create_task(turns.store([answer("t3", "ann")]))
            await asyncio.sleep(0)
            gone.cancel()
        return await stays

    assert asyncio.run(leave()) == 1
    assert campaign.n_answers == 3


def test_answers_have_their_turn_between_refits(campaign, monkeypatch):
    monkeypatch.setattr("wisecrowd.acquire.campaign.CATCH_UP_SECONDS", 0.0)
    campaign.tell_many([answer(task, worker) for task in TASKS for worker in "ab"])
    order = []

    async def both():
        turns = Turns(campaign)

        async def look():
            for _ in range(5):
                order.append("refit")
                assert await turns.run(campaign.catch_up)

        async def deliver():
            await turns.store([answer("t1", "c")])
            order.append("stored")

        await asyncio.gather(look(), deliver())

    asyncio.run(both())
    assert order.index("stored") <= 2


def test_refits_in_many_transactions_are_those_of_one(monkeypatch):
    def rounds(catching_up: bool) -> list:
        with Campaign(TASKS, classes=["x", "y"]) as campaign:
            campaign.tell_many([answer(task, worker, "xy"[(int(task[1:]) + n) % 3 == 0])
                                for n, worker in enumerate("abcd") for task in TASKS])  # fmt: skip
            while catching_up and campaign.catch_up():
                pass
            campaign.preview(1)
            return [(one.n_answers, one.gains, one.changed.tolist()) for one in campaign.rounds()]

    # A clock that jumps ends each transaction after one refit.
    clock = iter(range(1_000_000))
    monkeypatch.setattr("wisecrowd.acquire.answer_log.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("wisecrowd.acquire.campaign.CATCH_UP_SECONDS", 1.5)
    assert rounds(True) == rounds(False)


WARM = """
import sys
from wisecrowd.acquire import service
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.service import progress_of, warm_up
warm_up()
before = set(sys.modules)
with Campaign(range(9), classes=[0, 1]) as campaign:
    campaign.tell_many([(i, f"w{j}", (i * j) % 2) for i in range(9) for j in range(5)])
    progress_of(campaign)
    campaign.ask(3, workers=["w1"])
print(sorted(set(sys.modules) - before))
"""


def test_after_the_warm_up_no_fit_loads_a_library():
    run = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
