"""The report offers a check list, and shows what its answers measure."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd import simulate, truth
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.reporting import report

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def made():
    return simulate.crowd(150, 10 * simulate.OneCoinWorkers(5, 2), simulate.PerTask(3))


@pytest.fixture(scope="module")
def filled(made):
    """Return a list of the uncertain and the certain, with answers."""
    listed = truth.check_list(made.labels, 60, fit=DawidSkene().fit(made.labels))
    answers = [made.truth[task] for task in listed.columns["task"].tolist()]
    return pa.table({**listed.columns, "label": np.array(answers)})


def carried(page):
    text = page.partition('<script type="application/json" id="summary">')[2]
    return json.loads(text.partition("</script>")[0])


def test_a_page_without_known_answers_offers_the_list_of_the_command(made, tmp_path, capsys):
    from wisecrowd.cli.main import run

    simulated = made.labels
    rows = [(f"t{i}", f"w{j}", f"c{k}") for i, j, k in
            zip(simulated.task, simulated.worker, simulated.label, strict=True)]  # fmt: skip
    answers, page, target = (tmp_path / name for name in ("a.csv", "r.html", "check.csv"))
    answers.write_text("task,worker,label\n" + "\n".join(map(",".join, rows)) + "\n")
    assert run(["report", str(answers), "-m", "dawid-skene", "-o", str(page), "-q"]) == 0
    text = page.read_text()
    command = f"wisecrowd check {answers} -n 60 -m dawid-skene -o check.csv"
    assert command in text
    assert "data-check" in text
    assert run(["check", str(answers), "-m", "dawid-skene", "-o", str(target), "-q"]) == 0
    lines = [line.split(",") for line in target.read_text().splitlines()]
    assert carried(text)["check"] == lines


def test_a_page_with_answers_states_what_they_measure_everywhere(made, filled):
    shown = report(made.labels, method="dawid-skene", checked=filled)
    found = truth.accuracy(made.labels, filled, fit=DawidSkene().fit(made.labels))
    measured = shown.summary["verdict"]["measured"]
    for name in ("value", "low", "high"):
        assert measured[name] == pytest.approx(getattr(found, name))
    assert (measured["n"], measured["from"]) == (60, "check list")
    assert found.sentence in shown.html
    assert "data-check>" not in shown.html
    [own] = [one for name, one in zip(shown.summary["methods"]["names"],
                                      shown.summary["methods"]["accuracy"], strict=True)
             if name == "dawid-skene"]  # fmt: skip
    assert own["value"] == pytest.approx(found.value)
    now = [p["measured"] for p in shown.summary["budget"]["points"] if p["measured"] is not None]
    assert found.value in [pytest.approx(one) for one in now]


def test_workers_are_judged_with_the_weights_of_the_list(made, filled):
    shown = report(made.labels, method="dawid-skene", checked=filled)
    table = truth.workers(made.labels, filled, fit=DawidSkene().fit(made.labels))
    workers = map(str, table.columns["worker"].tolist())
    expected = dict(zip(workers, table.columns["accuracy"], strict=True))
    part = {row["worker"]: row["accuracy"] for row in shown.summary["workers"]["rows"]}
    for worker, value in part.items():
        assert value == pytest.approx(expected[worker], abs=2e-3)


def test_a_list_and_other_answers_do_not_go_together(made, filled):
    for more in ({"truth": {0: made.truth[0]}}, {"gold": {0: made.truth[0]}}):
        with pytest.raises(ParameterError, match="cannot be used with"):
            report(made.labels, checked=filled, **more)


def test_other_kinds_show_their_own_score():
    rng = np.random.default_rng(0)
    true, task = rng.normal(size=60), np.repeat(np.arange(60), 3)
    data = wc.CrowdNumbers.from_arrays(
        task, np.tile(np.arange(3), 60), true[task] + rng.normal(size=180)
    )
    fit = wc.aggregation.Mean().fit(data)
    offered = report(data, fit=fit)
    assert "wc.truth.check_list(labels, 60)" in offered.html
    assert len(carried(offered.html)["check"]) == 61
    listed = truth.check_list(data, 40, fit=fit)
    checked = pa.table({**listed.columns, "label": true[listed.columns["task"]].astype(str)})
    shown = report(data, fit=fit, checked=checked)
    found = truth.accuracy(data, checked, fit=fit)
    assert shown.summary["verdict"]["checked"]["value"] == pytest.approx(found.value)
    assert "Measured: mean absolute error" in shown.html
    assert "data-check>" not in shown.html
