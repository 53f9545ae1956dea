from __future__ import annotations

import json

import pytest
from tests.support.damaged_campaigns import tamper

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_input import LONGEST_ID, IdError, IdList, check_together
from wisecrowd.acquire.service import progress_of
from wisecrowd.core.exceptions import DataError, WisecrowdWarning

ODD = [float("nan"), float("inf"), -float("inf"), 1e308, 2**70, 10**5000, None, "", [1], "\ud800"]
COLUMNS = {"tasks": "task", "workers": "worker", "classes": "label"}


@pytest.fixture
def campaign(tmp_path):
    with Campaign(["t0", "t1"], open_tasks=True, path=tmp_path / "campaign.db") as made:
        made.tell_many([(task, worker, "x") for task in ("t0", "t1") for worker in ("a", "b")])
        yield made


def works(campaign) -> None:
    """Require that everything that reads a campaign works."""
    json.dumps(progress_of(campaign), allow_nan=False)
    assert campaign.fit("majority-vote").labels_.tolist() == ["x"] * campaign.n_tasks
    campaign.ask(1, workers=["new"])


@pytest.mark.parametrize(
    "value", [*ODD, 5, True, 1.5, "a" * (LONGEST_ID + 1)], ids=lambda v: f"{type(v)}"
)
@pytest.mark.parametrize("role", COLUMNS.values())
def test_an_id_that_would_break_the_campaign_does_not_join(campaign, role, value):
    row = {"task": "t0", "worker": "c", "label": "x"} | {role: value}
    if (role, value) == ("label", None):
        return  # which withdraws
    with pytest.raises(DataError):
        campaign.tell(**row)
    assert campaign.n_answers == 4
    works(campaign)


@pytest.mark.parametrize("key", [float("nan"), float("inf"), "k" * 20_000, 2**80])
def test_keys_have_the_same_limits(campaign, key):
    with pytest.raises(IdError):
        campaign.tell("t0", "c", "x", None, key)


def test_equal_numbers_are_one_id():
    with Campaign([1, 2], classes=[1, 2]) as campaign:
        for worker in (1, 1.0, 0.0, -0.0, 2.5):
            campaign.tell(1.0, worker, 1.0)
        assert sorted(campaign.labels.workers) == [0, 1, 2.5]
        assert campaign.labels.n_annotations == 3


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e308", "1.0e+20"])
@pytest.mark.parametrize("table", COLUMNS)
def test_a_campaign_that_holds_such_an_answer_opens_and_says_so(campaign, tmp_path, table, text):
    campaign.ask(1, workers=["a"])
    campaign.close()
    path = tmp_path / "campaign.db"
    size = {"tasks": 2, "workers": 2, "classes": 1}[table]
    row = {"task": 0, "worker": 0, "label": 0} | {COLUMNS[table]: size}
    value = json.dumps(json.loads(text))  # as it was written
    tamper(
        path,
        (f"INSERT INTO {table} VALUES (?, ?)", (size, value)),
        ("INSERT INTO answers (task, worker, label, cost, asked) VALUES (?, ?, ?, 1, 0)",
         tuple(row.values())),
        "INSERT INTO queries (task, worker, score, reason) SELECT MAX(tasks.code), "
        "MAX(workers.code), 0.5, 'x' FROM tasks, workers",
        "INSERT INTO leases SELECT MAX(id), 9e9 FROM queries",
    )  # fmt: skip
    with pytest.warns(WisecrowdWarning, match="answers left out: 1,"):
        opened = Campaign.open(path)
    with opened:
        assert opened.labels.n_annotations == 4  # also the one that it had replaced
        assert opened.labels.tasks.tolist() == ["t0", "t1"]
        assert opened.labels.classes.tolist() == ["x"]
        assert {one["worker"] for one in opened.judged_workers()} == {"a", "b"}
        assert all(query.task in ("t0", "t1") for query in opened.open_queries())
        works(opened)
        assert opened.tell("t0", "c", "x")


def test_a_campaign_with_mixed_ids_opens_and_says_so(campaign, tmp_path):
    campaign.close()
    path = tmp_path / "campaign.db"
    answer = "INSERT INTO answers (task, worker, label, cost, asked) VALUES (0, 2, 0, 1, 0)"
    tamper(path, "INSERT INTO workers VALUES (2, '5')", answer)
    with pytest.warns(WisecrowdWarning, match="workers are texts and numbers"):
        opened = Campaign.open(path)
    with opened:
        assert sorted(opened.labels.workers) == ["5", "a", "b"]
        works(opened)
        assert opened.tell("t1", 5, "x")
        assert opened.tell("t1", "another", "x")  # it cannot become worse


def test_a_failed_transaction_leaves_no_id(campaign):
    with pytest.raises(DataError):
        campaign.tell_many([("t0", "c", "x"), ("t0", float("nan"), "x")])
    assert campaign.labels.workers.tolist() == ["a", "b"]
    ids = IdList("workers")
    for text in ("1", "2.5"):
        ids.append(text)
    ids.cut(0)
    ids.check_new("a text")  # nothing is remembered of the numbers


@pytest.mark.parametrize(
    "options", [{"classes": ["a", 1]}, {"workers": [1, "a"]}, {"workers": [1e400]}]
)
def test_declared_ids_are_checked(options):
    with pytest.raises(DataError, match=r"same type|finite"):
        Campaign(["t"], **options)
    check_together([1, 2, 2.5], "classes")
