from __future__ import annotations

import json
from pathlib import Path

from wisecrowd.io.inspection import Question, inspect

FIXTURES = Path(__file__).parent / "fixtures"


def test_an_export():
    seen = inspect(FIXTURES / "label_studio.json", kinds="all")
    assert (seen.format, seen.n_labels, seen.n_tasks, seen.n_workers) == ("label-studio", 11, 3, 4)
    assert (seen.n_classes, seen.n_models, seen.n_gold) == (2, 1, 1)
    assert seen.labels_per_task == (3, 4)
    assert seen.classes == {"cat": 6, "dog": 5}
    assert seen.dropped == {"cancelled or skipped": 1}
    assert seen.columns["label"] == "animal"
    assert {"timestamp", "duration"} <= set(seen.columns)
    assert json.loads(json.dumps(seen.to_dict()))["format"] == "label-studio"


def test_a_plain_table_with_repeats(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item,worker,label,cost\n1,a,x,2\n1,a,y,3\n2,b,x,4\n")
    seen = inspect(path)
    assert seen.format == "csv"
    assert seen.columns == {"task": "item", "worker": "worker", "label": "label", "cost": "cost"}
    assert (seen.n_labels, seen.n_repeats, seen.labels_per_task) == (3, 1, (1, 2))


def test_several_questions_are_listed_with_their_sizes(tmp_path):
    def choice(name, value):
        return {"from_name": name, "type": "choices", "value": {"choices": [value]}}

    record = {"id": 1, "data": {}, "annotations": [
        {"completed_by": 1, "result": [choice("animal", "cat"), choice("mood", "sad")]},
        {"completed_by": 2, "result": [choice("animal", "dog")]}]}  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record]))
    seen = inspect(path)
    assert seen.questions == (Question("animal", 2, 1, 2, 2), Question("mood", 1, 1, 1, 1))
    assert seen.n_labels == 0
    assert inspect(path, label="mood").n_labels == 1


def test_a_question_that_nobody_answered_is_listed_without_labels(tmp_path):
    path = tmp_path / "report.csv"
    path.write_text(
        "_unit_id,_created_at,_golden,_id,_trust,_worker_id,animal,mood,animal_gold,mood_gold\n"
        "1,5/1/2024 10:01:11,false,911,0.9,ann,,sad,,\n"
        "1,5/1/2024 10:01:12,false,912,0.9,bob,,gay,,\n"
    )
    seen = inspect(path)
    assert seen.format == "appen"
    assert seen.questions == (Question("animal", 0, 0, 0, 0), Question("mood", 2, 1, 2, 2))
