"""Money and time: sums by worker, and whom to thank or to stop."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.reporting.money import money, with_cost
from wisecrowd.reporting.next_labels import next_labels
from wisecrowd.reporting.study import study_crowd


@pytest.fixture(scope="module")
def study():
    made = simulate.crowd(
        200, 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers(), n_classes=3
    )
    table = made.labels.to_dict()
    labels = CrowdLabels.from_arrays(
        table["task"], table["worker"], table["label"],
        cost=np.where(table["worker"] == 8, 3.0, 0.5), duration=np.full(len(table["task"]), 7.0),
    )  # fmt: skip
    return study_crowd(labels, method="dawid-skene", options={"accuracy": {"n_simulations": 3}})


def test_costs_and_durations_are_summed(study):
    found = money(study)
    n, labels = study.labels.labels_per_worker, study.labels
    assert found["spend"]["total"] == pytest.approx(0.5 * n.sum() + 2.5 * n[8])
    assert found["time"] == {"total": 7.0 * n.sum(), "median": 7.0, "n": n.sum()}
    everybody = found["groups"][-1]
    assert everybody["n_labels"] == labels.n_annotations
    parts = [row["cost"] for row in found["groups"][:-1]]
    assert sum(parts) == pytest.approx(everybody["cost"])
    assert found["per_right"] == pytest.approx(found["spend"]["total"] / found["n_right"])


def test_spammers_are_to_stop_and_nobody_with_a_finding_is_thanked(study):
    found = money(study)
    assert {row["worker"] for row in found["stop"]} == {"8", "9"}
    assert found["thank"]
    assert not {row["worker"] for row in found["thank"]} & {"8", "9"}


def test_nothing_without_cost_and_durations():
    made = simulate.crowd(30, 5 * simulate.OneCoinWorkers(8, 2))
    study = study_crowd(made.labels, method="dawid-skene")
    assert money(study) is None


@pytest.mark.parametrize("cost", [-1.0, float("inf"), float("nan")])
def test_a_price_is_finite_and_not_negative(cost):
    with pytest.raises(ParameterError, match="not a price"):
        with_cost(CrowdLabels.from_arrays(["a"], ["x"], [0]), cost)


def test_next_labels_gain_more_on_uncertain_tasks(study):
    posterior = np.tile([0.98, 0.01, 0.01], (2000, 1))
    posterior[:200] = [0.4, 0.3, 0.3]
    busy = study.labels.labels_per_worker / study.labels.n_annotations
    law = study.law
    tasks = np.zeros(2000, dtype=int)
    found = next_labels(posterior, law, tasks, busy, 0.9, 10_000, 0)
    assert found["gain"] > 2 * found["gain_even"] > 0
    assert found["gain"] < 0.1 * 2000  # of the tasks that are wrong
    assert next_labels(posterior, law, tasks, busy, 1.0, 10_000, 0)["gain"] == 0
    assert next_labels(posterior, law, tasks, busy, 0.9, 10_000, 0) == found


def test_no_more_labels_are_bought_than_there_are(study):
    busy = study.labels.labels_per_worker / study.labels.n_annotations
    posterior, tasks = np.tile([0.4, 0.3, 0.3], (40, 1)), np.zeros(40, dtype=int)
    found = next_labels(posterior, study.law, tasks, busy, 0.8, 120, 0)
    assert found["n"] == 120
    assert 0 < found["gain"] <= 0.2 * 40
    assert next_labels(posterior, study.law, tasks, busy, 0.8, 10**6, 0)["n"] == 1000


def test_random_workers_are_not_the_cheapest(study):
    """Labels that are right by chance do not count."""
    found = money(study)
    random = next(row for row in found["stop"] if row["worker"] == "9")  # costs as much as others
    good = found["thank"][0]
    assert good["time_per_right"] == pytest.approx(
        good["time"] / (good["n_labels"] * (good["right"] - 1 / 3) / (2 / 3))
    )
    assert random["time_per_right"] is None
    everybody = found["groups"][-1]
    assert everybody["time_per_right"] > good["time_per_right"]
