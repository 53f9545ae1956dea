"""Batches of tasks with all their annotations, and parts of the data that hide the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.features import as_features
from wisecrowd.learning import CCEM
from wisecrowd.learning.training import crowd_data
from wisecrowd.learning.training.crowd_data import CrowdData, Features


def data():
    labels = wc.CrowdLabels.from_arrays(
        [0, 0, 1, 2, 3, 3, 3], [0, 1, 1, 0, 0, 1, 2], [0, 1, 1, 0, 0, 0, 1], classes=[0, 1]
    )
    labels = labels.select_annotations(labels.task != 2)
    return CrowdData(np.arange(8.0).reshape(4, 2), labels, np.array([-1, 1, -1, -1]))


def test_a_batch_has_the_annotations_of_its_tasks_in_their_order():
    batch = data().batch(torch.tensor([3, 0, 2]))
    assert batch.x.tolist() == [[6, 7], [0, 1], [4, 5]]
    assert batch.task.tolist() == [0, 0, 0, 1, 1]  # the third of them has no labels
    assert batch.worker.tolist() == [0, 1, 2, 0, 1]
    assert batch.label.tolist() == [0, 0, 1, 0, 1]
    assert batch.gold.tolist() == [-1, -1, -1]
    assert data().batch(torch.tensor([1])).gold.tolist() == [1]


def test_batches_are_nearly_equal_and_together_all():
    rows = torch.arange(4)
    parts = list(data().batches(rows, 3))
    assert [len(part.x) for part in parts] == [2, 2]
    assert torch.cat([part.rows for part in parts]).tolist() == rows.tolist()


def test_a_part_knows_nothing_of_other_tasks():
    whole = data()
    part = whole.only(torch.tensor([0, 2]))
    assert part.labels.labels_per_task.tolist() == [2, 0, 0, 0]
    assert part.gold.tolist() == [-1, -1, -1, -1]
    assert part.whole is whole
    assert whole.only(torch.arange(4)) is whole


def test_batches_found_together_are_those_found_one_by_one(monkeypatch):
    monkeypatch.setattr("wisecrowd.learning.training.crowd_data.TASKS_AT_ONCE", 2)
    whole, rows = data(), torch.tensor([3, 1, 2, 0, 3])
    parts = list(whole.batches(rows, 1))
    assert len(parts) == 5
    for row, part in zip(rows.tolist(), parts, strict=True):
        mine = np.flatnonzero(whole.labels.task == row)
        assert part.rows.tolist() == [row]
        assert part.edge.tolist() == mine.tolist()
        assert part.task.tolist() == [0] * len(mine)
        assert part.worker.tolist() == whole.labels.worker[mine].tolist()


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_mapped_file_trains_like_the_array_and_is_never_copied_whole(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_data, "NUMBERS_AT_ONCE", 64)  # so that there are several parts
    X = np.random.default_rng(0).integers(0, 200, size=(60, 4)).astype(dtype)
    votes = np.repeat((X[:, :1] > 99).astype(int), 3, axis=1)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    features = Features(as_features(mapped, mapped=True))
    assert features.tensor is None
    assert features.is_mapped
    assert max(len(part) for part in features.parts()) == 16
    assert torch.equal(features[torch.tensor([3, 1])], torch.tensor(X[[3, 1]]).float())
    method = CCEM(module="mlp", epochs=2, selection="last")
    in_memory = method.fit(X, votes).predict_proba(X)
    np.testing.assert_allclose(
        method.fit(mapped, votes).predict_proba(mapped), in_memory, atol=1e-6
    )


def test_a_mapped_number_beyond_single_precision_is_refused_with_its_row(tmp_path: Path) -> None:
    X = np.ones((5, 2))
    X[3, 1] = 1e300
    np.save(tmp_path / "x.npy", X)
    features = Features(np.load(tmp_path / "x.npy", mmap_mode="r"))
    with pytest.raises(DataError, match="row 3"):
        features[torch.tensor([4, 3])]
