"""A part of what ``benchmarks.trust.files`` does to ten thousand model files."""

from __future__ import annotations

import json
import random
import tracemalloc

import numpy as np
import pytest
from tests.support import damaged_files
from tests.support.damaged_files import INDEX, fingerprint, fuzz_file, fuzz_model, mutate, seal

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError
from wisecrowd.storage import models


def crowd():
    return wc.simulate.crowd(
        30, 5 * wc.simulate.OneCoinWorkers(8, 2), wc.simulate.PerTask(3), n_classes=3
    ).labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "model"
    wc.aggregation.DawidSkene(prior=wc.priors.WeakDiagonal()).fit(crowd()).save(place)
    return place


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    pytest.importorskip("torch")
    place = tmp_path_factory.mktemp("models") / "network"
    X = np.random.default_rng(0).normal(size=(30, 4))
    wc.learning.AggNet(epochs=1).fit(X, crowd()).save(place)
    return place


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("which", ["folder", "network"])
def test_damage_is_refused_or_harmless(which, request):
    place = request.getfixturevalue(which)
    before = files_of(place)
    found = fuzz_model(place, 100)
    assert found.crashes == []
    assert found.changed == 0
    assert found.total == 100
    assert files_of(place) == before


@pytest.mark.parametrize("which", ["folder", "network"])
def test_forged_models_are_refused_or_answer(which, request):
    place = request.getfixturevalue(which)
    data = crowd() if which == "folder" else np.random.default_rng(0).normal(size=(30, 4))
    found = fuzz_model(place, 60, forge=True, use=lambda model: model.predict_proba(data))
    assert found.crashes == []
    assert found.changed > 0  # digests that fit let some through: they are other models


def test_headers_that_ask_for_memory(folder, monkeypatch):
    monkeypatch.setattr(damaged_files, "mutate", lambda content, name, rng: (
        "change_number", damaged_files.change_number(content, rng)))  # fmt: skip
    tracemalloc.start()
    try:
        found = fuzz_model(folder, 40, forge=True)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert found.crashes == []
    assert found.refused > 10


def test_a_reader_that_is_lax_is_noticed(folder, monkeypatch):
    """Without its digests a model is changed unnoticed, and without checks reading crashes."""
    monkeypatch.setattr(models, "index_digest", lambda index: index.get("digest"))
    monkeypatch.setattr(models, "_unchanged", lambda file, digest: file)
    assert fuzz_model(folder, 60).changed > 0
    monkeypatch.setattr(models, "DataError", ZeroDivisionError)
    monkeypatch.setattr(models, "_refuse", lambda *_args: 1 / 0)
    assert fuzz_model(folder, 20).crashes


@pytest.mark.parametrize("name", ["model.json", "a.npy", "network.safetensors"])
def test_every_kind_of_damage_changes_something(name, folder, network):
    place = network if name.startswith("network") else folder
    file = place / name if name != "a.npy" else next(place.glob("*.npy"))
    content, rng = file.read_bytes(), random.Random(1)
    kinds = dict(mutate(content, file.name, rng) for _ in range(300))
    assert len(kinds) >= 6
    assert sum(damaged != content for damaged in kinds.values()) >= len(kinds) - 1


def test_sealing_makes_digests_fit(folder, tmp_path):
    for name, content in files_of(folder).items():
        (tmp_path / name).write_bytes(content)
    index = json.loads((tmp_path / INDEX).read_text())
    index["state"]["n_iter_"] += 1
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(DataError, match="was changed"):
        wc.load(tmp_path)
    seal(tmp_path)
    assert wc.load(tmp_path).n_iter_ == wc.load(folder).n_iter_ + 1
    assert fingerprint(wc.load(tmp_path)) != fingerprint(wc.load(folder))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes_", {"$type": "ids", "shape": [1], "items": ["x"]}),
        ("workers_", {"$type": "ids", "shape": [0], "items": []}),
        ("tasks_", []),
    ],
)
def test_forged_ids_must_fit_the_arrays(folder, tmp_path, name, value):
    """Compiled code would read beyond the end of them."""
    for file, content in files_of(folder).items():
        (tmp_path / file).write_bytes(content)
    index = json.loads((tmp_path / INDEX).read_text())
    index["state"][name] = value
    (tmp_path / INDEX).write_text(json.dumps(index))
    seal(tmp_path)
    with pytest.raises(DataError, match=r"has the shape|is no list of ids"):
        wc.load(tmp_path)


def test_checkpoints(tmp_path):
    pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(30, 4))
    path, labels = tmp_path / "fit.checkpoint", crowd()
    method = wc.learning.CCEM(epochs=1, checkpoint=path)
    method.fit(X, labels)
    assert path.exists()
    name = tmp_path / "fit.safetensors"  # so that its header is edited too
    path.rename(name)
    method.checkpoint = name
    found = fuzz_file(name, 30, lambda: fingerprint(method.fit(X, labels, resume=True)))
    assert found.crashes == []
    assert found.changed == 0
    assert damaged_files.Outcomes().total == 0
