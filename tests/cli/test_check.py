"""``wisecrowd check``: the list, the answers, and what is refused; nothing is lost."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate, truth
from wisecrowd.io.tables import read_frame

ONE_COIN = ("-m", "one-coin")


@pytest.fixture
def crowd(table):
    """Return the files of answers and of the truth of 120 tasks, and the true classes."""
    made = simulate.crowd(
        120, 10 * simulate.OneCoinWorkers(5, 2), simulate.PerTask(3), classes=["cat", "dog"],
        random_state=3,
    )  # fmt: skip
    data = made.labels
    tasks = [f"t{i}" for i in range(120)]
    rows = [(tasks[i], f"w{j}", data.classes[k])
            for i, j, k in zip(data.task, data.worker, data.label, strict=True)]  # fmt: skip
    known = [data.classes[k] for k in made.truth] if made.truth.dtype.kind in "iu" else made.truth
    answers = table("answers.csv", ["task", "worker", "label"], rows)
    return answers, dict(zip(tasks, known, strict=True))


def fill(path, known, target=None, until=None, **columns):
    """Write the answers of a person into a list."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if until is None or int(row["order"]) <= until:
            row["label"] = known[row["task"]]
        row |= {name: function(row) for name, function in columns.items()}
    with (target or path).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return target or path


def test_a_list_comes_back_as_a_measured_accuracy(cli, crowd, tmp_path):
    answers, known = crowd
    target = tmp_path / "check.csv"
    code, out, err = cli("check", answers, "-n", "40", "-m", "dawid-skene", "-o", target)
    assert (code, out) == (0, "")
    assert f"wisecrowd check {answers} --checked {target} -m dawid-skene" in err
    assert target.read_text().startswith("order,task,stratum,weight,label\n")
    fill(target, known)
    code, out, err = cli("check", answers, "--checked", target, "-m", "dawid-skene", "--json")
    found = json.loads(out)
    assert (code, list(found)) == (0, ["accuracy", "accuracy_strata", "notes"])
    data = wc.read(answers)
    fit = wc.aggregation.DawidSkene().fit(data)
    right = np.mean([known[t] == x for t, x in zip(fit.tasks_, fit.labels_, strict=True)])
    [row] = found["accuracy"]
    assert row["low"] <= right <= row["high"]
    same = truth.accuracy(data, read_frame(target), fit=fit)
    assert row["value"] == pytest.approx(same.value)
    code, out, err = cli("check", answers, "--checked", target, "-m", "dawid-skene")
    assert out.startswith(same.sentence + " Their mean confidence is ")
    assert "confidence      tasks  checked" in out


def test_lists_are_printed_as_csv_or_json(cli, crowd):
    answers, _ = crowd
    code, out, err = cli("check", answers, *ONE_COIN, "-n", "30", "-q")
    assert (code, len(out.splitlines()), err) == (0, 31, "")
    found = json.loads(cli("check", answers, *ONE_COIN, "-n", "30", "--json").out)
    assert list(found) == ["check_list", "check_list_strata", "notes"]
    assert len(found["check_list"]) == 30


def test_looks_are_planned_in_the_list(cli, crowd, tmp_path):
    answers, known = crowd
    target = tmp_path / "check.csv"
    cli("check", answers, *ONE_COIN, "-n", "60", "--looks", "30", "-o", target, "-q")
    assert "look" in target.read_text().splitlines()[0]
    part = fill(target, known, tmp_path / "part.csv", until=30)
    assert "more often than planned" not in cli("check", answers, *ONE_COIN, "--checked", part).out
    part = fill(target, known, tmp_path / "part.csv", until=20)
    assert "more often than planned" in cli("check", answers, *ONE_COIN, "--checked", part).out
    assert cli("check", answers, "--looks", "many").code == 2
    assert cli("check", answers, *ONE_COIN, "--anytime", "--looks", "20").code == 2


def test_a_floor_is_an_exit_code(cli, crowd, tmp_path):
    answers, known = crowd
    target = tmp_path / "check.csv"
    cli("check", answers, *ONE_COIN, "-n", "40", "-o", target, "-q")
    fill(target, known)
    assert cli("check", answers, *ONE_COIN, "--checked", target, "--floor", "0.1").code == 0
    assert cli("check", answers, *ONE_COIN, "--checked", target, "--floor", "1").code == 1
    code, _, err = cli("check", answers, *ONE_COIN, "--floor", "0.9")
    assert (code, "give --checked too" in err) == (2, True)


def test_a_floor_is_for_shares(cli, table):
    rows = [(f"t{i}", f"w{j}", i + j) for i in range(40) for j in range(2)]
    answers = table("a.csv", ["task", "worker", "label"], rows)
    known = table("t.csv", ["task", "label"], [(f"t{i}", i) for i in range(20)])
    arguments = ("check", answers, "--type", "numbers", "-m", "mean", "--checked", known)
    code, out, err = cli(*arguments, "--floor", "0.5")
    assert (code, out) == (2, "")
    assert "--floor is for shares" in err
    assert cli(*arguments).out.startswith("The mean absolute error is 0.5")


def test_a_filled_list_is_not_overwritten(cli, crowd, tmp_path):
    answers, known = crowd
    target = tmp_path / "check.csv"
    cli("check", answers, *ONE_COIN, "-o", target, "-q")
    assert cli("check", answers, *ONE_COIN, "-n", "50", "-o", target, "-q").code == 0  # still empty
    before = fill(target, known).read_text()
    code, _, err = cli("check", answers, *ONE_COIN, "-o", target)
    assert (code, target.read_text()) == (2, before)
    assert "--overwrite" in err
    assert (
        cli("check", answers, *ONE_COIN, "--checked", target, "-o", target, "--overwrite").code == 2
    )
    assert target.read_text() == before


def test_results_from_elsewhere_are_checked(cli, crowd, tmp_path):
    answers, known = crowd
    labels, target = tmp_path / "labels.csv", tmp_path / "check.csv"
    cli("aggregate", answers, "-m", "majority-vote", "-o", labels, "-q")
    cli("check", answers, "--labels", labels, "-n", "40", "-o", target, "-q")
    fill(target, known)
    found = json.loads(cli("check", answers, "--labels", labels, "--checked", target, "--json").out)
    vote = json.loads(
        cli("check", answers, "-m", "majority-vote", "--checked", target, "--json").out
    )
    assert found["accuracy"][0]["n_errors"] == vote["accuracy"][0]["n_errors"]
    rows = labels.read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(rows[:50]) + "\n")
    code, _, err = cli("check", answers, "--labels", tmp_path / "few.csv", "--checked", target)
    assert (code, "has no label for task" in err) == (3, True)
    plain = "\n".join(",".join(row.split(",")[:2]) for row in rows)
    (tmp_path / "plain.csv").write_text(plain + "\n")
    out = cli("check", answers, "--labels", tmp_path / "plain.csv", "--checked", target, "--json")
    assert json.loads(out.out)["accuracy"][0]["mean_confidence"] is None


def test_results_made_with_the_same_answers_are_refused(cli, crowd, tmp_path, table):
    answers, known = crowd
    labels, target = tmp_path / "labels.csv", tmp_path / "check.csv"
    cli("check", answers, *ONE_COIN, "-n", "40", "-o", target, "-q")
    fill(target, known)
    with target.open(newline="") as file:
        task = next(csv.DictReader(file))["task"]
    other = next(one for one in known if one not in target.read_text().replace("\n", ","))
    for gold in (target, table("gold.csv", ["task", "label"], [(task, known[task])])):
        cli("aggregate", answers, "-m", "one-coin", "--gold", gold, "-o", labels, "-q")
        code, _, err = cli("check", answers, "--labels", labels, "--checked", target)
        assert (code, "cannot judge it" in err) == (3, True)
    gold = table("gold.csv", ["task", "label"], [(other, known[other])])
    cli("aggregate", answers, "-m", "one-coin", "--gold", gold, "-o", labels, "-q")
    assert cli("check", answers, "--labels", labels, "--checked", target).code == 0


def test_what_tasks_look_like_is_listed_without_their_truth(cli, crowd, tmp_path, table):
    answers, known = crowd
    shown = table("tasks.csv", ["task", "text", "truth"], [(t, f"a {t}", x)
                                                          for t, x in known.items()])  # fmt: skip
    out = cli("check", answers, *ONE_COIN, "--tasks", shown, "-n", "30", "-q").out.splitlines()
    assert out[0] == "order,task,text,stratum,weight,label"
    first = next(csv.DictReader(out))
    assert first["text"] == f"a {first['task']}"
    wrong = table("wrong.csv", ["task", "text"], [("x", "y")])
    assert "names none of the tasks" in cli("check", answers, *ONE_COIN, "--tasks", wrong).err


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"label": lambda row: "cow"}, "the class 'cow'"),
        ({"label": lambda row: ""}, "no answers yet"),
        ({"task": lambda row: f"x{row['task']}"}, "has no row in the labels"),
        ({"weight": lambda row: "0"}, "numbers above 0"),
        ({"weight": lambda row: "60"}, "add up to"),
    ],
)
def test_bad_lists_are_one_sentence(cli, crowd, tmp_path, columns, said):
    answers, known = crowd
    target = tmp_path / "check.csv"
    cli("check", answers, *ONE_COIN, "-n", "40", "-o", target, "-q")
    fill(target, known, **columns)
    before = target.read_bytes()
    code, out, err = cli("check", answers, *ONE_COIN, "--checked", target)
    assert (code, out) == (3, "")
    assert said in err
    assert err.count("\n") == 1
    assert target.read_bytes() == before


@pytest.mark.parametrize("option", [("-n", "40"), ("--anytime",), ("--tasks", "x.csv")])
def test_options_of_a_list_are_refused_with_answers(cli, crowd, option):
    answers, _ = crowd
    code, _, err = cli("check", answers, *ONE_COIN, "--checked", answers, *option)
    assert (code, "is for making a list" in err) == (2, True)


def test_ids_that_look_like_formulas_come_back(cli, table, tmp_path):
    rows = [(f"=t{i}", f"w{j}", "ab"[i % 2]) for i in range(40) for j in range(2)]
    answers, target = table("a.csv", ["task", "worker", "label"], rows), tmp_path / "check.csv"
    cli("check", answers, "-n", "40", "-o", target, "-m", "majority-vote", "-q")
    fill(target, {f"'=t{i}": "ab"[i % 2] for i in range(40)} | {f"=t{i}": "ab"[i % 2]
                                                              for i in range(40)})  # fmt: skip
    code, out, err = cli("check", answers, "--checked", target, "-m", "majority-vote")
    assert code == 0, err
    assert out.startswith("All of the labels are right (all 40 tasks checked).")


def test_a_list_goes_through_label_studio(cli, crowd, tmp_path):
    answers, known = crowd
    project, export = tmp_path / "check.json", tmp_path / "export.json"
    code, _, err = cli("check", answers, *ONE_COIN, "-n", "40", "-o", project)
    assert code == 0
    assert "40 tasks for Label Studio's Import" in err
    tasks = json.loads(project.read_text())
    for n, task in enumerate(tasks):
        label = known[task["data"]["task"]]
        result = {"from_name": "class", "to_name": "x", "type": "choices",
                  "value": {"choices": [str(label)]}}  # fmt: skip
        task |= {"id": n, "annotations": [{"id": n, "completed_by": 1, "result": [result]}]}
    export.write_text(json.dumps(tasks))
    found = json.loads(cli("check", answers, *ONE_COIN, "--checked", export, "--json").out)
    table = tmp_path / "check.csv"
    cli("check", answers, *ONE_COIN, "-n", "40", "-o", table, "-q")
    same = json.loads(
        cli("check", answers, *ONE_COIN, "--checked", fill(table, known), "--json").out
    )
    assert found["accuracy"][0]["value"] == pytest.approx(same["accuracy"][0]["value"])
