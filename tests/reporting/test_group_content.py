"""Groups of tasks in the report: figures, withheld cells, biased workers, and its absence."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from wisecrowd import CrowdLabels, CrowdNumbers
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.fairness import by_group, with_task_attributes, with_worker_attributes
from wisecrowd.reporting.document import render, summary_of
from wisecrowd.reporting.group_content import (
    RATES,
    groups_of_tasks,
    groups_of_workers,
    tasks_behind,
)
from wisecrowd.reporting.study import study_crowd

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def grouped():
    """Labels and truth of 240 tasks; worker w5 accuses Rome, and 6 tasks are of a third city."""
    rng = np.random.default_rng(0)
    city = np.arange(240) % 2
    truth = (rng.random(240) < np.where(city == 1, 0.6, 0.4)).astype(int)
    task, worker = np.divmod(np.arange(240 * 6), 6)
    p = np.where(truth[task] == 1, 0.85, 0.15)
    p = np.where((worker == 5) & (city[task] == 1), 0.95, p)
    label = np.where(rng.random(len(task)) < p, "yes", "no")
    labels = CrowdLabels.from_arrays(task, [f"w{j}" for j in worker], label)
    names = np.array(["Oslo", "Rome"], dtype=object)[city]
    names[np.flatnonzero(truth == 0)[:6]] = HOSTILE
    names[-3:] = None
    attributes = {"task": range(240), "city": names}
    return with_task_attributes(labels, attributes), np.where(truth == 1, "yes", "no")


def study(grouped, known=True, **options):
    labels, truth = grouped
    given = dict(enumerate(truth.tolist())) if known else None
    return study_crowd(labels, method="majority-vote", truth=given, **options)


@pytest.fixture(scope="module")
def known(grouped):
    return study(grouped)


def test_figures_are_those_of_the_reported_labels(grouped, known):
    labels, truth = grouped
    found = groups_of_tasks(known)["attributes"][0]
    names = labels.task_columns["city"]
    expected = by_group(truth, known.fit.labels_, names, positive="yes")
    assert found["columns"] == [
        "Selection rate", "Base rate", "Accuracy", "True positive rate", "False positive rate",
    ]  # fmt: skip
    for place, rate in enumerate(("selection_rate", "base_rate", "accuracy")):
        for g, row in enumerate(found["rows"]):
            if row["n_tasks"] is not None:
                assert row["cells"][place]["value"] == pytest.approx(
                    expected.rates[rate][g], abs=1e-3
                )
                assert row["cells"][place]["low"] <= row["cells"][place]["value"]
    gap = next(row for row in found["differences"] if row["rate"] == "Selection rate")
    value = expected.differences["demographic_parity_difference"][0]
    assert gap["value"] == pytest.approx(value, abs=1e-3)


def test_small_cells_are_withheld(known):
    summary = summary_of(known)
    rows = {row["group"]: row for row in summary["groups"]["attributes"][0]["rows"]}
    assert rows[HOSTILE]["n_tasks"] is None
    assert rows[HOSTILE]["cells"] == [None] * 5
    assert rows["Rome"]["n_tasks"] > 100
    text = json.dumps(summary["next"])
    assert "group-gap" in text
    assert "alert" not in text  # no sentence gives the rate of a small group
    notes = " ".join(summary["groups"]["attributes"][0]["notes"])
    assert "do not count in the differences" in notes
    assert "No positive task" not in notes  # nor its classes


def test_rates_are_shares_of_the_tasks_behind_them():
    metrics = by_group([1] * 3 + [0] * 20, [1] * 23, ["a"] * 12 + ["b"] * 11, n_replicates=0)
    behind = [tasks_behind(metrics, 0, rate) for rate in RATES]
    assert dict(zip(RATES, behind, strict=True)) == {
        "selection_rate": 12, "base_rate": 12, "accuracy": 12,
        "true_positive_rate": 3, "false_positive_rate": 9,
    }  # fmt: skip


def test_page_names_biased_workers_and_escapes_groups(known):
    page = render(summary_of(known))
    section = re.search(r'<section id="groups".*?</section>', page, re.DOTALL).group()
    assert "Groups of tasks" in section
    assert HOSTILE not in page
    assert section.count("withheld</td>") == 5
    assert "3 of 240 tasks have no group" in section
    workers = groups_of_tasks(known)["attributes"][0]["workers"]
    assert [(row["worker"], row["group"]) for row in workers] == [("w5", "Rome")]
    assert "<bdi>w5</bdi>" in section
    flagged = {row["worker"] for row in summary_of(known)["workers"]["rows"] if row["flags"]}
    assert "w5" in flagged


def test_without_truth_the_page_says_what_nobody_can_know(grouped):
    summary = summary_of(study(grouped, known=False))
    assert summary["groups"]["attributes"][0]["columns"] == ["Selection rate"]
    assert "nobody can know whether the groups differ or the crowd is biased" in render(summary)


def test_positive_class_and_attributes_can_be_chosen(grouped):
    other = {"group-gaps": {"attributes": ["city"], "positive": "no"}}
    found = study(grouped, options=other)
    assert groups_of_tasks(found)["positive"] == "no"
    for options, error in (
        ({"positive": "maybe"}, ParameterError),
        ({"attributes": ["town"]}, ParameterError),
    ):
        with pytest.raises(error):
            study(grouped, options={"group-gaps": options})
    one = with_task_attributes(grouped[0], {"task": [0], "flat": ["a"]})
    with pytest.raises(DataError, match="one group only"):
        study_crowd(one, options={"group-gaps": {"attributes": ["flat"]}})


def test_absent_without_attributes(summary):
    assert "groups" not in summary
    assert 'id="groups"' not in render(summary)


def test_numbers_have_no_groups():
    from wisecrowd.reporting.answer_study import study_answers

    data = CrowdNumbers.from_arrays(["t"], ["w"], [1.5])
    with pytest.raises(ParameterError, match="no audit part 'group-gaps'"):
        study_answers(data, options={"group-gaps": {}})


@pytest.fixture(scope="module")
def attributed():
    """Twelve careful workers, twelve who label Rome yes, and two of a third team."""
    rng = np.random.default_rng(1)
    city, truth = rng.integers(2, size=(2, 80))
    task, worker = np.divmod(np.arange(80 * 26), 26)
    p = np.where(truth[task] == 1, 0.9, 0.1)
    p = np.where((worker >= 12) & (worker < 24) & (city[task] == 1), 0.8, p)
    label = (rng.random(len(task)) < p).astype(int)
    labels = CrowdLabels.from_arrays(task, worker, label)
    names = np.array(["Oslo", "Rome"])[city].tolist()
    labels = with_task_attributes(labels, {"task": range(80), "city": names})
    teams = {"worker": range(26), "team": ["a"] * 12 + ["b"] * 12 + ["c"] * 2, "one": ["x"] * 26}
    labels = with_worker_attributes(labels, teams)
    return study_crowd(labels, method="majority-vote", truth=dict(enumerate(truth.tolist())))


def test_groups_of_workers(attributed):
    found = groups_of_workers(attributed)
    team, one = found["attributes"]
    a, b, c = team["rows"]
    labels, known = attributed.labels, attributed.known
    mine = labels.worker < 12
    accuracy = np.mean(labels.label[mine] == known[labels.task[mine]])
    assert a["cells"][0]["value"] == pytest.approx(accuracy, abs=1e-3)
    assert found["gaps"] == [{"attribute": "city", "high": "Rome", "low": "Oslo"}]
    assert b["cells"][1]["low"] > a["cells"][1]["high"]
    assert b["cells"][1]["low"] < b["cells"][1]["value"] < b["cells"][1]["high"]
    assert (c["n_workers"], c["cells"]) == (None, None)
    assert "one group only" in one["reason"]
    page = render(summary_of(attributed))
    section = re.search(r'<section id="worker_groups".*?</section>', page, re.DOTALL).group()
    assert "12, too few" in section
    assert "one group only" in section
