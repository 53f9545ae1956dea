from __future__ import annotations

import json

import pytest
from tests.cli.conftest import ANSWERS

HEADER = ["task", "worker", "label"]


@pytest.fixture
def tasks(table):
    return table("tasks.csv", ["task"], [[f"t{i}"] for i in range(1, 8)])


def test_queries_as_csv(cli, rows, answers, tasks):
    done = cli("next", answers, "--tasks", tasks, "-n", 3)
    assert done.code == 0
    found = rows(done.out)
    assert list(found[0]) == ["task", "worker", "score", "reason"]
    assert {row["task"] for row in found[:2]} == {"t6", "t7"}
    assert [row["worker"] for row in found] == [""] * 3
    assert "random one replaces it" in done.err


def test_times_give_the_order(cli, table, tasks):
    timed = table("timed.csv", [*HEADER, "when"], [(*r, i) for i, r in enumerate(ANSWERS[::-1])])
    done = cli("next", timed, "--tasks", tasks, "--timestamp", "when")
    assert "order of their timestamps" in done.err


def test_available_workers_and_their_costs(cli, rows, table, answers, tasks):
    workers = table("workers.csv", ["worker", "cost"], [("ann", 1), ("eve", 3)])
    done = cli("next", answers, "--tasks", tasks, "--workers", workers, "-n", 20)
    assert done.code == 0
    found = [(row["task"], row["worker"]) for row in rows(done.out)]
    assert {worker for _, worker in found} == {"ann", "eve"}
    assert not set(found) & {(task, worker) for task, worker, _ in ANSWERS}
    assert len(set(found)) == len(found) == 2 * 7 - 5  # ann has answered five


def test_exit_code_4_when_nothing_is_left(cli, rows, answers, tasks, tmp_path):
    output = tmp_path / "next.csv"
    done = cli("next", answers, "--tasks", tasks, "--budget", 14, "-o", output)
    assert done.code == 4
    assert "the budget is spent" in done.err
    assert rows(output) == []


def test_json(cli, answers, tasks):
    done = cli("next", answers, "--tasks", tasks, "--json", "-n", 2, "-q")
    found = json.loads(done.out)
    assert (found["reason"], found["stop"], found["answers"]) == (None, False, 14)
    assert len(found["queries"]) == 2


def test_a_classifier_is_the_prior_of_the_tasks(cli, rows, table, answers, tasks):
    # The classifier is sure of all tasks but t7; none of the others needs to be asked first.
    header = ["task", "label", "confidence", "p_cat", "p_dog"]
    sure = [[f"t{i}", "cat", 0.99, 0.99, 0.01] for i in range(1, 7)]
    prior = table("prior.csv", header, [*sure, ["t7", "cat", 0.5, 0.5, 0.5]])
    options = ["--tasks", tasks, "-n", 1, "--min-labels", 0, "--policy", "margin"]
    done = cli("next", answers, *options, "--task-prior", prior)
    assert done.code == 0
    assert rows(done.out)[0]["task"] == "t7"
    part = table("part.csv", header, sure[:2])
    assert "5 tasks are not in" in cli("next", answers, *options, "--task-prior", part).err


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        (["task", "p_cat"], ["t1", 0.5], "no column 'p_dog'"),
        (["task", "p_cat", "p_dog"], ["t1", 0.5, "much"], "row 1"),
        (["task", "p_cat", "p_dog"], ["t1", 0.5, -0.5], "row 1"),
        (["task", "p_cat", "p_dog"], ["t1", 0, 0], "row 1"),
    ],
)
def test_a_bad_prior_is_refused(cli, table, answers, tasks, header, row, words):
    prior = table("prior.csv", header, [row])
    done = cli("next", answers, "--tasks", tasks, "--task-prior", prior)
    assert done.code == 3
    assert words in done.err


def test_same_seed_same_queries(cli, answers, tasks):
    first, second = (cli("next", answers, "--tasks", tasks, "--seed", 3).out for _ in range(2))
    assert first == second


def test_gold_questions(cli, rows, table, answers, tasks):
    gold = table("gold.csv", ["task", "label"], [("t1", "cat"), ("t2", "dog")])
    workers = table("workers.csv", ["worker"], [("eve",)])
    done = cli("next", answers, "--tasks", tasks, "--gold", gold, "--gold-share", 0.1,
               "--workers", workers, "-n", 3)  # fmt: skip
    assert [row["reason"] for row in rows(done.out)][:2] == ["gold: screening"] * 2
    done = cli("next", answers, "--tasks", tasks, "--gold", gold, "-n", 30)
    assert not {row["task"] for row in rows(done.out)} & {"t1", "t2"}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--policy", "uncertian"], 2, "did you mean 'uncertain'"),
        (["--min-labels", "4", "--max-labels", "2"], 2, "not below the minimum"),
        (["--budget", "-1"], 2, "budget"),
        (["--model", "coin"], 2, "model"),
        (["--target", "0.9"], 2, "held-out gold"),
    ],
)
def test_wrong_options(cli, answers, tasks, options, code, words):
    done = cli("next", answers, "--tasks", tasks, *options)
    assert done.code == code
    assert words in done.err


def test_unknown_tasks_are_refused_unless_open(cli, table, answers):
    some = table("some.csv", ["task"], [["t1"], ["t2"]])
    done = cli("next", answers, "--tasks", some)
    assert done.code == 3
    assert "'t3'" in done.err
    assert "--open" in done.err
    assert cli("next", answers, "--tasks", some, "--open").code == 0


def test_files_without_ids(cli, table, answers):
    other = table("other.csv", ["name", "size"], [["a", 1]])
    done = cli("next", answers, "--tasks", other)
    assert done.code == 3
    assert "no column of tasks" in done.err
    empty = table("empty.csv", ["task", "text"], [])
    done = cli("next", answers, "--tasks", empty)
    assert done.code in (2, 3)
    assert "wisecrowd: " in done.err
