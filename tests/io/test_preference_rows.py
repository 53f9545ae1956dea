"""Rows for preference trainers: chosen and rejected, flip rates, weights, texts, ties."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.preference_rows import COLUMNS, flip_rates, preference_rows
from wisecrowd.kinds.pairs.container import CrowdPairs

VOTES = CrowdPairs.from_arrays(
    ["q1", "q1", "q2", "q2"], ["ann", "bob", "cem", "ann"], ["x", "x", "y", "x"],
    ["y", "y", "z", "z"], ["left", "left", "tie", "right"], weight=[1.0, 2.0, 1.0, 1.0],
)  # fmt: skip


def fit_with(**reliability):
    return SimpleNamespace(
        reliability_=np.array(list(reliability.values())),
        workers_=np.array(list(reliability), dtype=object),
        labels_per_worker_=np.array([2, 1, 1][: len(reliability)]),
    )


def rows_of(**options):
    table = preference_rows(VOTES, **options)
    assert tuple(table) == COLUMNS
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def test_the_winner_is_chosen_and_ties_are_left_out():
    rows = rows_of()
    assert [(r["prompt"], r["chosen"], r["rejected"], r["worker"]) for r in rows] == [
        ("q1", "x", "y", "ann"), ("q1", "x", "y", "bob"), ("q2", "z", "x", "ann"),
    ]  # fmt: skip
    assert [r["weight"] for r in rows] == [1.0, 2.0, 1.0]
    assert {r["flip_rate"] for r in rows} == {0.0}


def test_flip_rates_and_weights_come_from_reliabilities():
    rows = rows_of(fit=fit_with(ann=0.9, bob=0.6, cem=0.7))
    assert [r["flip_rate"] for r in rows] == pytest.approx([0.1, 0.4, 0.1])
    assert [r["weight"] for r in rows] == pytest.approx([0.8, 2 * 0.2, 0.8])


def test_adversaries_are_turned_kept_or_dropped():
    fit = fit_with(ann=0.9, bob=0.2, cem=0.7)
    turned, kept, dropped = (
        rows_of(fit=fit, adversaries=word) for word in ("turn", "keep", "drop")
    )
    assert (turned[1]["chosen"], turned[1]["rejected"]) == ("y", "x")
    assert turned[1]["flip_rate"] == pytest.approx(0.2)
    assert turned[1]["weight"] == pytest.approx(2 * 0.6)
    assert (kept[1]["chosen"], kept[1]["flip_rate"]) == ("x", pytest.approx(0.8))
    assert kept[1]["weight"] == 0.0
    assert [row["worker"] for row in dropped] == ["ann", "ann"]


def test_ties_in_both_orders_have_half_the_weight():
    rows = [row for row in rows_of(ties="both") if row["worker"] == "cem"]
    assert [(r["chosen"], r["rejected"], r["weight"]) for r in rows] == [
        ("y", "z", 0.5), ("z", "y", 0.5),
    ]  # fmt: skip


def test_workers_outside_of_the_fit_have_the_mean():
    rates = flip_rates(VOTES, fit_with(ann=0.9, bob=0.6))
    assert rates == pytest.approx([0.1, 0.4, 1 - (2 * 0.9 + 0.6) / 3])


def test_weights_have_the_gradient_of_the_likelihood_near_equal_scores():
    """The slope of the weighted logistic loss at 0 is that of the loss with reliabilities."""
    eta, step = 0.8, 1e-6
    likelihood = [-np.log(eta / (1 + np.exp(-h)) + (1 - eta) / (1 + np.exp(h))) for h in (0, step)]
    row = rows_of(fit=fit_with(ann=eta, bob=0.9, cem=0.9))[0]
    logistic = [row["weight"] * np.log1p(np.exp(-h)) for h in (0, step)]
    assert np.diff(likelihood) == pytest.approx(np.diff(logistic), rel=1e-4)


def test_texts_from_mappings_and_files(tmp_path):
    items, prompts = {"x": "X!", "y": "Y!", "z": "Z!"}, {"q1": "One?", "q2": "Two?"}
    plain = rows_of(items=items, prompts=prompts)
    assert plain[2] | {"weight": 0, "flip_rate": 0} == {
        "prompt": "Two?", "chosen": "Z!", "rejected": "X!", "worker": "ann",
        "flip_rate": 0, "weight": 0,
    }  # fmt: skip
    (tmp_path / "items.csv").write_text("item,text\nx,X!\ny,Y!\nz,Z!\n")
    (tmp_path / "prompts.jsonl").write_text(
        '{"task": "q1", "prompt": "One?"}\n{"task": "q2", "prompt": "Two?"}\n'
    )
    read = rows_of(items=tmp_path / "items.csv", prompts=tmp_path / "prompts.jsonl")
    assert [list(map(str, row.values())) for row in read] == [
        list(map(str, row.values())) for row in plain
    ]


def test_texts_by_task_and_item(tmp_path):
    (tmp_path / "items.csv").write_text(
        "task,item,text\nq1,x,x1\nq1,y,y1\nq2,x,x2\nq2,y,y2\nq2,z,z2\n"
    )
    rows = rows_of(items=tmp_path / "items.csv")
    assert [(r["chosen"], r["rejected"]) for r in rows] == [
        ("x1", "y1"),
        ("x1", "y1"),
        ("z2", "x2"),
    ]
    with pytest.raises(DataError, match="no text of item 'y' in task 'q1'"):
        rows_of(items={("q1", "x"): "a", ("q2", "z"): "b", ("q2", "x"): "c"})


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_files_are_read_by_other_loaders(tmp_path, suffix):
    path = tmp_path / f"preferences{suffix}"
    assert wc.write_preferences(path, VOTES, fit_with(ann=0.9, bob=0.6, cem=0.7)) == 3
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
    assert [tuple(row) for row in rows] == [COLUMNS] * 3
    assert rows[0]["flip_rate"] == pytest.approx(0.1)
    assert rows[2]["chosen"] == "z"


def test_a_fit_of_the_library_gives_its_reliabilities():
    pytest.importorskip("torch")
    fit = wc.learning.PreferenceNet(epochs=2).fit(np.eye(3), VOTES, items=["x", "y", "z"])
    table = preference_rows(VOTES, fit)
    np.testing.assert_allclose(table["flip_rate"][0], 1 - fit.reliability_[0])
    plain = wc.learning.PreferenceNet(epochs=2, loss="plain")
    with pytest.raises(ParameterError, match="has no reliability_"):
        preference_rows(VOTES, plain.fit(np.eye(3), VOTES, items=["x", "y", "z"]))


def test_crowd_bt_finds_the_adversary_and_its_votes_are_turned():
    rng = np.random.default_rng(0)
    score = np.linspace(-2, 2, 8)
    left = rng.integers(0, 8, 600)
    right = (left + rng.integers(1, 8, 600)) % 8
    worker = rng.integers(0, 5, 600)
    better = score[left] > score[right]
    outcome = np.where(better ^ (worker == 4), 0, 1)
    votes = CrowdPairs.from_arrays(None, worker, left, right, outcome)
    table = preference_rows(votes, wc.aggregation.CrowdBT().fit(votes))
    assert (table["flip_rate"] < 0.2).all()
    chosen, rejected = table["chosen"].astype(int), table["rejected"].astype(int)
    assert (chosen > rejected).all()


def test_wrong_input(tmp_path):
    with pytest.raises(ParameterError, match=r"end the name in .jsonl or .parquet"):
        wc.write_preferences(tmp_path / "rows.csv", VOTES)
    with pytest.raises(DataError, match="1 of 3 items have no text, such as 'z'"):
        rows_of(items={"x": "X", "y": "Y"})
    with pytest.raises(DataError, match="2 of 2 tasks have no prompt"):
        rows_of(prompts={})
    with pytest.raises(ParameterError, match="ties"):
        rows_of(ties="guess")
    (tmp_path / "items.csv").write_text("name,words\nx,X\n")
    with pytest.raises(DataError, match="call them item and text"):
        rows_of(items=tmp_path / "items.csv")
    (tmp_path / "items.csv").write_text("item,text\nx,X\nx,Y\n")
    with pytest.raises(DataError, match="'x' two texts"):
        rows_of(items=tmp_path / "items.csv")
    same = CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"], relation="same")
    with pytest.raises(DataError, match="relation 'prefers'"):
        preference_rows(same)
