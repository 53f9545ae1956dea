from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.reporting.document import summary_of
from wisecrowd.reporting.study import study_crowd

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "'-alert(1)-'",
    "=cmd()",
    "{{ 7 * 7 }}",
    "x" * 10_000,
    "שלום\u202eevil",
    "🙂\u200d🧑 naïve",
    "a\x00b\x1b[2J",
]


@pytest.fixture(scope="session")
def crowd():
    """Ten careful workers, three spammers and three colluders, with times and costs."""
    population = (
        10 * simulate.OneCoinWorkers(8, 2) + 3 * simulate.Spammers() + 3 * simulate.Colluders()
    )
    return simulate.crowd(200, population, simulate.PerTask(8), n_classes=3, random_state=1)


@pytest.fixture(scope="session")
def labels(crowd):
    table = crowd.labels.to_dict()
    n = len(table["task"])
    return wc.CrowdLabels.from_arrays(
        table["task"], table["worker"], table["label"],
        timestamp=np.arange(n), cost=np.full(n, 0.05),
    )  # fmt: skip


@pytest.fixture(scope="session")
def truth(crowd):
    return dict(enumerate(crowd.truth.tolist()))


@pytest.fixture(scope="session")
def study(labels, truth):
    return study_crowd(labels, truth=truth)


@pytest.fixture(scope="session")
def summary(study):
    return summary_of(study, files=["my answers.csv"], reading=["--task", "image"])


@pytest.fixture(scope="session")
def hostile():
    """A crowd whose tasks, workers and classes are all hostile text."""
    rng = np.random.default_rng(0)
    n = len(HOSTILE)
    truth = rng.integers(0, n, 40)
    task, worker = np.divmod(np.arange(40 * n), n)
    right = rng.random(len(task)) < 0.8
    label = np.where(right, truth[task], rng.integers(0, n, len(task)))
    names = np.array(HOSTILE, dtype=object)
    tasks = np.array([f"{HOSTILE[i % n]}{i}" for i in range(40)], dtype=object)
    return wc.CrowdLabels.from_arrays(tasks[task], names[worker], names[label])


@pytest.fixture(scope="session")
def hostile_summary(hostile):
    files = ["<b>$(reboot)'.csv"]
    return summary_of(study_crowd(hostile), files=files, title="</title><script>alert(1)</script>")
