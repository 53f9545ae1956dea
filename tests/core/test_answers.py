"""One worker gives no certainty, whatever the kind."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import wisecrowd as wc
from wisecrowd import CrowdLabels
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.answers import capped_rows, only_worker
from wisecrowd.core.exceptions import FindingWarning

ALONE = (["t", "u", "v"], ["ann"] * 3, ["a", "b", "a"])


def ids(fitted):
    return [finding.id for finding in fitted.findings_]


def test_workers_without_weight_do_not_count():
    labels = CrowdLabels.from_arrays(
        ["t", "t"], ["ann", "bob"], ["a", "b"], weight=[1.0, 0.0], workers=["ann", "bob", "cem"]
    )
    assert only_worker(labels) == "ann"
    assert only_worker(CrowdLabels.from_arrays(["t", "t"], ["ann", "bob"], ["a", "b"])) is None


def test_the_finding_names_the_worker_and_is_told():
    with pytest.warns(FindingWarning, match="one worker \\('ann'\\)"):
        fitted = MajorityVote().fit(ALONE)
    assert fitted.confidence_ == pytest.approx(0.8)
    assert fitted.labels_.tolist() == ["a", "b", "a"]
    assert not fitted.ties_.any()
    assert ids(fitted) == ["one-worker"]


def test_gold_and_priors_say_more_than_the_worker():
    assert MajorityVote().fit(ALONE, gold={"t": "a"}).confidence_.max() == 1
    informed = DawidSkene().fit(ALONE, task_prior=np.array([[0.99, 0.01]] * 3))
    assert "one-worker" not in ids(informed)
    assert informed.confidence_.max() > 0.8


def test_predictions_saved_models_and_updates_keep_the_cap(tmp_path):
    fitted = MajorityVote().fit(ALONE)
    fitted.save(tmp_path / "model")
    for model in (fitted, wc.load(tmp_path / "model")):
        assert model.predict_proba((["x"], ["ann"], ["a"])).max() == pytest.approx(0.8)
    updated = DawidSkene(prior=None).fit(ALONE).update((["x"], ["ann"], ["a"]))
    assert updated.confidence_.max() <= 0.8 + 1e-12
    assert "one-worker" in ids(updated)
    assert "one-worker" not in ids(updated.update((["x"], ["bob"], ["a"])))


def test_the_cap_keeps_the_order_and_the_sum():
    rows = capped_rows(np.array([[0.97, 0.02, 0.01], [0.5, 0.3, 0.2]]), 0.8)
    assert rows.sum(axis=1) == pytest.approx(1)
    assert rows[0] == pytest.approx([0.8, 0.1 + 0.00367, 0.1 - 0.00367], abs=1e-4)
    assert rows[1].tolist() == [0.5, 0.3, 0.2]
    sparse = capped_rows(csr_array(np.array([[1.0, 0, 0], [0.6, 0.4, 0]])), 0.8)
    assert sparse.toarray().tolist() == [[0.8, 0, 0], [0.6, 0.4, 0]]
    assert capped_rows(np.ones((2, 1)), 0.8).max() == 1  # there is nothing else it could be


def test_a_pack_of_one_worker_says_the_same(tmp_path):
    (tmp_path / "a.csv").write_text(
        "task,worker,label\n" + "".join(f"t{i},ann,{'ab'[i % 2]}\n" for i in range(30))
    )
    wc.pack(tmp_path / "a.csv", tmp_path / "crowd.pack", accept="one-worker")
    found = wc.fit_pack(MajorityVote(), tmp_path / "crowd.pack", output=tmp_path / "out")
    assert "one-worker" in [finding.id for finding in found.fit.findings]
    confidence = pq.read_table(tmp_path / "out").column("confidence").to_numpy()
    assert confidence == pytest.approx(0.8)
