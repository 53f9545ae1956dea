"""Which workers are read: models beside humans, kinds and names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.inspection import inspect

FIXTURES = Path(__file__).parent / "fixtures"
WITH_MODELS = ("label_studio.json", "argilla.json", "argilla_flattened.jsonl")
PLAIN = "task,worker,label,worker_kind\n1,ann,cat,human\n1,bob,dog,human\n1,gpt,eel,model\n"


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text(PLAIN)
    return path


@pytest.mark.parametrize("name", WITH_MODELS)
def test_models_do_not_vote_beside_humans(name):
    labels = wc.read(FIXTURES / name)
    assert not any(worker.startswith("model:") for worker in labels.workers)
    assert labels.worker_kind is None
    (note,) = (note for note in labels.notes if "left out, because" in note)
    assert note.startswith("1 model with 3 labels is left out, because humans labelled too")
    assert note.endswith("kinds=('human', 'model') counts both")


@pytest.mark.parametrize("name", WITH_MODELS)
@pytest.mark.parametrize("kinds", [("human", "model"), ["model", "human"], "all"])
def test_models_vote_when_they_are_asked_for(name, kinds):
    labels = wc.read(FIXTURES / name, kinds=kinds)
    assert labels.worker_kind.tolist().count("model") == 1
    assert not any("because humans" in note for note in labels.notes)


def test_cvat_tags_of_a_model(tmp_path):
    meta = "<meta><job><assignee><username>ann</username></assignee></job></meta>"
    image = '<image name="1.jpg"><tag label="cat"/><tag label="dog" source="auto"/></image>'
    path = tmp_path / "a.xml"
    path.write_text(f"<annotations>{meta}{image}</annotations>")
    labels = wc.read(path)
    assert (labels.workers.tolist(), labels.classes.tolist()) == (["ann"], ["cat"])


def test_what_only_a_model_used_is_forgotten(plain):
    labels = wc.read(plain)
    assert labels.classes.tolist() == ["cat", "dog"]
    assert any("1 model with 1 label is left out" in note for note in labels.notes)
    assert wc.read(plain, kinds="all").classes.tolist() == ["cat", "dog", "eel"]
    assert wc.read(plain, kinds="model").workers.tolist() == ["gpt"]


def test_predictions_alone_are_read(tmp_path):
    made = {"from_name": "a", "type": "choices", "value": {"choices": ["x"]}}
    task = {"id": 1, "data": {}, "annotations": [],
            "predictions": [{"model_version": "m", "result": [made]}]}  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(json.dumps([task]))
    assert wc.read(path).worker_kind.tolist() == ["model"]
    with pytest.raises(DataError, match="no label by the workers that are asked for"):
        wc.read(path, kinds="human")


def test_kinds_that_are_not_there(plain):
    with pytest.raises(ParameterError, match=r"no kind of worker 'humans' \(did you mean 'human'"):
        wc.read(plain, kinds="humans")
    with pytest.raises(ParameterError, match="kinds is empty"):
        wc.read(plain, kinds=[])
    with pytest.raises(ParameterError, match="kinds is 3"):
        wc.read(plain, kinds=3)
    with pytest.raises(DataError, match="no label by the workers"):
        wc.read(FIXTURES / "crowd_kit.csv", kinds="model")
    assert wc.read(FIXTURES / "crowd_kit.csv", kinds="human").n_workers == 3


def test_workers_without_a_kind_are_humans(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label,worker_kind\n1,ann,x,human\n1,bob,y,\n1,gpt,y,model\n")
    assert wc.read(path).workers.tolist() == ["ann", "bob"]
    assert wc.read(path, kinds="human").workers.tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("bob", ["ann", "a[1]"]),
        (["b?b", "a[[]1]"], ["ann"]),
        ("a[1]", ["ann", "bob"]),
        (["*n*", "b*"], ["a[1]"]),
        ("B*", ["ann", "a[1]", "bob"]),
    ],
)
def test_workers_are_excluded_by_name(tmp_path, patterns, left):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,ann,x\n1,bob,y\n1,a[1],y\n")
    labels = wc.read(path, exclude_workers=patterns)
    assert sorted(labels.workers) == sorted(left)
    assert any("as exclude_workers asks" in note for note in labels.notes)


def test_patterns_that_match_nobody_or_everybody(plain):
    labels = wc.read(plain, exclude_workers=["ann", "eve"])
    assert "1 pattern of exclude_workers matched no worker" in labels.notes
    assert not any("eve" in note for note in labels.notes)  # an id may be somebody's address
    with pytest.raises(DataError, match="no label by the workers that are asked for"):
        wc.read(plain, exclude_workers="*")
    with pytest.raises(ParameterError, match="exclude_workers has 3"):
        wc.read(plain, exclude_workers=[3])


def test_rows_keep_their_numbers_in_messages(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,gpt,x\n1,ann,x\n2,ann,\n")
    with pytest.raises(DataError, match=r"row 3 of .*a\.csv"):
        wc.read(path, exclude_workers="gpt")


def test_inspect_tells_what_would_be_read():
    seen = inspect(FIXTURES / "label_studio.json")
    assert (seen.n_labels, seen.n_workers, seen.n_models) == (8, 3, 0)
    assert any("1 model with 3 labels is left out" in remark for remark in seen.remarks)
    both = inspect(FIXTURES / "label_studio.json", kinds="all")
    assert (both.n_labels, both.n_workers, both.n_models) == (11, 4, 1)
