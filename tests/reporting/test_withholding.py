from __future__ import annotations

import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.reporting.withholding import WITHHELD, Withheld

KEY = b"a key of sixteen bytes or more"


@pytest.fixture(scope="module")
def labels():
    """Four workers who copy each other, two of them with four labels only, and five others."""
    crowd = wc.simulate.crowd(
        60, 5 * wc.simulate.OneCoinWorkers(8, 2), wc.simulate.PerTask(5), n_classes=3
    )
    task, worker, label = (column.tolist() for column in crowd.labels.to_dict().values())
    for name, n in (("copy-a", 60), ("copy-b", 60), ("rare-a", 4), ("rare-b", 4)):
        task += range(n)
        worker += [name] * n
        label += [(i * 7) % 3 for i in range(n)]
    workers = [f"worker {name}" for name in worker]
    return wc.pseudonymize(wc.CrowdLabels.from_arrays(task, workers, label), KEY)


@pytest.fixture(scope="module")
def few(labels):
    found = labels.workers[labels.labels_per_worker < 5].tolist()
    assert len(found) == 2
    return found


def test_nothing_in_a_report_names_them(labels, few, tmp_path):
    pytest.importorskip("jinja2")
    plain = wc.report(labels)
    assert all(name in plain.html for name in few)  # without withholding they are there
    made = wc.report(labels, tmp_path / "report.html", withhold_below=5)
    everything = json.dumps(made.summary) + made.html
    assert not any(name in everything for name in few)
    assert made.summary["workers"]["n_withheld"] == 2
    assert made.summary["workers"]["total"] == 7
    assert made.summary["workers"]["n_shown"] == 7
    assert made.summary["verdict"] == plain.summary["verdict"]  # they count
    assert len(made.whole_tables["workers"]["worker"]) == 7
    kept = set(labels.workers.tolist()) - set(few)
    assert all(name in made.html for name in kept)


def test_the_network_stays_whole(labels, few):
    withheld = Withheld(frozenset(few), 5)
    first, second = labels.workers[:2].tolist()
    graph = {
        "nodes": [{"worker": name, "group": 0} for name in (few[0], first, few[1], second)],
        "edges": [[0, 1], [1, 3], [2, 3]],
        "cells": [[0, 1, 3.0, 0.9, 0.5], [1, 3, 4.0, 1.0, 0.5]],
    }
    if first in few or second in few:
        pytest.fail("choose other workers")
    assert withheld._graph(graph) == {
        "nodes": [{"worker": first, "group": 0}, {"worker": second, "group": 0}],
        "edges": [[0, 1]],
        "cells": [[0, 1, 4.0, 1.0, 0.5]],
    }


def test_tables_and_sentences(few):
    withheld = Withheld(frozenset(few), 5)
    other = "w-aaaaaaaaaaaaaaaa"
    table = {
        "worker": np.array([few[0], other, "x"], dtype=object),
        "text": np.array(["a", f"{few[1]} and {other}", None], dtype=object),
        "n": np.arange(3),
    }
    left = withheld.table(table)
    assert {name: values.tolist() for name, values in left.items()} == {
        "worker": [other, "x"], "text": [f"{WITHHELD} and {other}", None], "n": [1, 2],
    }  # fmt: skip
    assert withheld.anywhere({few[0]: [few[1], 3, {"x": f"<{few[0]}>"}]}) == {
        WITHHELD: [WITHHELD, 3, {"x": f"<{WITHHELD}>"}]
    }


def test_ids_of_their_own_cannot_be_withheld():
    labels = wc.CrowdLabels.from_arrays([1, 2], ["ann", "ann"], ["a", "b"])
    with pytest.raises(ParameterError, match=r"wisecrowd\.pseudonymize"):
        wc.report(labels, withhold_below=5)
