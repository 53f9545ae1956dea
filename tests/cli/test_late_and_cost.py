"""--drop-after leaves labels out, and --cost gives the report prices."""

from __future__ import annotations

import json

import pytest

ROWS = [
    (
        f"t{i}",
        worker,
        "cat" if (i + (worker == "c" and i > 3)) % 2 else "dog",
        f"2026-01-0{i + 1}",
        2,
    )
    for i in range(8)
    for worker in "abc"
]


@pytest.fixture
def answers(table):
    return table("a.csv", ["task", "worker", "label", "timestamp", "price"], ROWS)


def test_labels_after_the_time_are_left_out(cli, answers):
    ran = cli("aggregate", answers, "-m", "majority-vote", "--drop-after", "c=2026-01-04", "--json")
    found = json.loads(ran.out)
    assert found["n_labels"] == 20
    assert any("left out 4 labels" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("value", "says"),
    [("c", "give a worker and a time"), ("x=2026-01-04", "no worker 'x'"), ("c=soon", "such as")],
)
def test_bad_times_are_refused_in_one_sentence(cli, answers, value, says):
    ran = cli("aggregate", answers, "--drop-after", value)
    assert ran.code != 0
    assert says in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("cost", "total"), [("0.25", 6.0), ("price", 48.0)])
def test_the_cost_is_a_number_or_a_column(cli, answers, cost, total):
    ran = cli("report", answers, "--json", "-m", "majority-vote", "--cost", cost)
    found = json.loads(ran.out)
    assert found["money"]["spend"]["total"] == total
    assert "--cost" not in found["next"][0]["command"]


@pytest.mark.parametrize("cost", ["-1", "inf", "nothing"])
def test_bad_costs_are_refused(cli, answers, cost):
    ran = cli("report", answers, "--json", "--cost", cost)
    assert ran.code != 0
    assert "Traceback" not in ran.err
