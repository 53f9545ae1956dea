"""The benchmarks of workers run on tiny crowds."""

from __future__ import annotations

from benchmarks.honest import workers_by_gold
from benchmarks.honest.worker_errors import Cell, worker_errors

from wisecrowd import simulate


def test_worker_errors_give_a_row_for_each_method():
    rows = worker_errors(["auto", "one-coin"], [Cell(20, 4, 3, 2)], n_crowds=2)
    assert [row.met is None for row in rows] == [False, True]


def test_workers_by_gold_of_a_tiny_crowd(monkeypatch):
    made = simulate.crowd(120, 2 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(2))
    truth = dict(zip(made.labels.tasks.tolist(), made.truth.tolist(), strict=True))
    tally = workers_by_gold.score("tiny", made.labels, truth, 2, 30)
    assert len(tally.covered) == len(tally.fired) == 2
    monkeypatch.setattr(workers_by_gold, "tallies", lambda *_: [tally])
    assert any("coverage" in row.what for row in workers_by_gold.workers_by_gold())
