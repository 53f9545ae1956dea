"""Money and time: sums by worker, and whom to thank or to stop."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.reporting.budget import next_labels
from wisecrowd.reporting.money import money, with_cost
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
    return study_crowd(labels, method="dawid-skene")


def test_costs_and_durations_are_summed(study):
    found = money(study)
    n, labels = study.labels.labels_per_worker, study.labels
    assert found["spend"]["total"] == pytest.approx(0.5 * n.sum() + 2.5 * n[8])
    assert found["time"] == {"total": 7.0 * n.sum(), "median": 7.0, "n": n.sum()}
    everybody = found["groups"][-1]
    assert everybody["n_labels"] == labels.n_annotations
    parts = [row["cost"] for row in found["groups"][:-1]]
    assert sum(parts) == pytest.approx(everybody["cost"])
    assert found["n_right"] is found["per_right"] is None  # no class is known


def test_a_right_result_has_a_price_where_classes_are_known(study):
    truth = dict.fromkeys(study.labels.tasks.tolist(), study.labels.classes[0])
    known = study_crowd(study.labels, method="dawid-skene", truth=truth)
    found = money(known)
    assert found["n_right"] == pytest.approx(known.right.sum())
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
    found = next_labels(posterior, law, tasks, busy, 10_000, 0)
    assert found["before"] == pytest.approx(posterior.max(axis=1).mean())
    gain, even = (found[name] - found["before"] for name in ("after", "after_even"))
    assert gain > 2 * even > 0
    assert gain < 0.1  # of the tasks, which are uncertain
    assert next_labels(posterior, law, tasks, busy, 10_000, 0) == found


def test_no_more_labels_are_bought_than_there_are(study):
    busy = study.labels.labels_per_worker / study.labels.n_annotations
    posterior, tasks = np.tile([0.4, 0.3, 0.3], (40, 1)), np.zeros(40, dtype=int)
    found = next_labels(posterior, study.law, tasks, busy, 120, 0)
    assert found["n"] == 120
    assert 0.4 < found["after"] <= 1
    assert next_labels(posterior, study.law, tasks, busy, 10**6, 0)["n"] == 1000


def test_random_workers_are_not_the_cheapest(study):
    """Labels that agree by chance do not count."""
    found = money(study)
    random = next(row for row in found["stop"] if row["worker"] == "9")  # costs as much as others
    good = found["thank"][0]
    assert good["time_per_agreement"] == pytest.approx(
        good["time"] / (good["n_labels"] * (good["agreement_with_result"] - 1 / 3) / (2 / 3))
    )
    assert random["time_per_agreement"] is None
    everybody = found["groups"][-1]
    assert everybody["time_per_agreement"] > good["time_per_agreement"]
