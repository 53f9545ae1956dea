"""What goes wrong in real exports, one test each."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.inventory import SeveralQuestionsError
from wisecrowd.io.tables import read, read_gold


def rows(labels) -> list[tuple[str, str, str]]:
    table = labels.to_dict()
    return list(zip(table["task"], table["worker"], table["label"], strict=True))


def table_of(*lines, separator: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(lines)
    return text.getvalue()


def lines_of(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# ---------------------------------------------------------------------------------- Label Studio


def choice(name: str, *values: str) -> dict:
    return {"from_name": name, "type": "choices", "value": {"choices": list(values)}}


def made(by, *results, **more) -> dict:
    return {"completed_by": by, "result": list(results), **more}


def test_label_studio_worker_as_number_and_as_object_is_one_worker(written):
    task = {
        "id": 7,
        "data": {},
        "annotations": [
            made(3, choice("a", "x")),
            made({"id": 4, "email": "b@example.org"}, choice("a", "y")),
        ],
    }
    other = {"id": 8, "data": {}, "annotations": [made({"id": 3}, choice("a", "x"))]}  # fmt: skip
    labels = read(written("a.json", json.dumps([task, other])))
    assert rows(labels) == [("7", "3", "x"), ("7", "4", "y"), ("8", "3", "x")]


def test_label_studio_legacy_completions_and_skips(written):
    task = {"id": 1, "data": {}, "completions": [
        made(1, choice("a", "x")), made(2, choice("a", "y"), skipped=True),
        made(3, choice("a", "y"), was_cancelled=True)]}  # fmt: skip
    assert rows(read(written("a.json", json.dumps([task])))) == [("1", "1", "x")]


def two_questions() -> str:
    task = {"id": 1, "data": {"image": "cat.jpg"}, "annotations": [
        made(1, choice("animal", "cat"), choice("mood", "sad")),
        made(2, choice("animal", "dog"))]}  # fmt: skip
    return json.dumps([task])


def test_several_questions_must_be_chosen_among(written):
    path = written("a.json", two_questions())
    remedy = r"choose one with label='animal'\.$"
    with pytest.raises(SeveralQuestionsError, match=rf"2 questions, 'animal', 'mood'; {remedy}"):
        read(path)
    labels = read(path, label="mood")
    assert rows(labels) == [("1", "1", "sad")]
    assert any("2 judgements about other questions" in note for note in labels.notes)
    assert rows(read(path, question="mood")) == [("1", "1", "sad")]
    with pytest.raises(DataError, match="no labels for 'moot'; did you mean 'mood'"):
        read(path, label="moot")


def test_the_task_can_be_named_by_its_data(written):
    labels = read(written("a.json", two_questions()), label="animal", task="data.image")
    assert rows(labels) == [("cat.jpg", "1", "cat"), ("cat.jpg", "2", "dog")]


def test_files_with_different_questions_are_not_mixed(written):
    one = json.dumps([{"id": 1, "data": {}, "annotations": [made(1, choice("a", "x"))]}])
    other = json.dumps([{"id": 1, "data": {}, "annotations": [made(2, choice("b", "x"))]}])
    with pytest.raises(SeveralQuestionsError, match="'a', 'b'"):
        read([written("a.json", one), written("b.json", other)])


def test_several_choices_are_a_set_and_regions_are_none(written):
    box = {"from_name": "box", "type": "rectanglelabels", "value": {}}
    twice = [choice("a", "x"), choice("a", "y")]
    task = {
        "id": 1,
        "data": {},
        "annotations": [
            made(1, choice("a", "y", "x"), box),
            made(2, choice("a", "x", "y")),
            made(3, *twice),
        ],
    }
    path = written("a.json", json.dumps([task]))
    assert rows(read(path)) == [("1", "1", "x|y"), ("1", "2", "x|y")]
    assert read(path).classes.tolist() == ["x", "y"]
    labels = read(path, type="labels")
    assert labels.classes.tolist() == ["x|y"]
    assert rows(labels) == [("1", "1", "x|y"), ("1", "2", "x|y")]
    note = next(note for note in labels.notes if note.startswith("left out"))
    assert "1 marks (rectanglelabels)" in note
    assert "2 labels per region" in note


def test_rating_taxonomy_and_pairwise(written):
    def result(kind, value):
        return {"from_name": "a", "type": kind, "value": value}

    task = {"id": 1, "data": {}, "annotations": [
        made(1, result("rating", {"rating": 3})),
        made(2, result("taxonomy", {"taxonomy": [["animal", "cat"]]})),
        made(3, result("pairwise", {"selected": "left"}))]}  # fmt: skip
    labels = read(written("a.json", json.dumps([task])), type="labels")
    assert [label for _, _, label in rows(labels)] == ["3", "animal / cat", "left"]


def test_a_model_with_a_persons_number_is_somebody_else(written):
    task = {"id": 1, "data": {}, "annotations": [made(1, choice("a", "x"))],
            "predictions": [{"model_version": 1, "result": [choice("a", "y")]}]}  # fmt: skip
    labels = read(written("a.json", json.dumps([task])), kinds="all")
    assert labels.workers.tolist() == ["1", "model:1"]
    assert labels.worker_kind.tolist() == ["human", "model"]


def test_gold_that_contradicts_itself_is_none(written):
    task = {"id": 1, "data": {}, "annotations": [
        made(1, choice("a", "x"), ground_truth=True),
        made(2, choice("a", "y"), ground_truth=True),
        made(3, choice("a", "y")), made(4, choice("a", "y"))]}  # fmt: skip
    path = written("a.json", json.dumps([task]))
    assert any("two gold classes" in note for note in read(path).notes)
    with pytest.raises(DataError, match="marks no label as gold"):
        read_gold(path)


def test_flat_export_without_disagreement_asks_for_the_column(written):
    text = table_of(["text", "id", "mood", "annotator", "annotation_id"],
                    ["hello", 1, "sad", 1, 10], ["bye", 2, "glad", 1, 11])  # fmt: skip
    path = written("a.csv", text)
    with pytest.raises(SeveralQuestionsError, match="'text', 'mood'"):
        read(path)
    assert rows(read(path, label="mood")) == [("1", "1", "sad"), ("2", "1", "glad")]


def test_flat_export_with_several_choices_as_json(written):
    text = table_of(["id", "mood", "annotator", "annotation_id"],
                    [1, '{"choices": ["sad", "glad"]}', 1, 10], [1, "sad", 2, 11])  # fmt: skip
    assert [label for *_, label in rows(read(written("a.csv", text)))] == ["glad|sad", "sad"]


# ------------------------------------------------------------------------------ MTurk and Toloka

HIT = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "Reward", "WorkTimeInSeconds"]


def test_mturk_hits_with_several_tasks_share_out_reward_and_time(written):
    text = table_of(
        [*HIT, "Input.url1", "Input.url2", "Answer.animal1", "Answer.animal2"],
        ["h1", "a1", "ann", "Approved", "$0.10", 30, "u", "v", "cat", "dog"],
        ["h1", "a2", "bob", "Approved", "$0.10", 60, "u", "v", "cat", ""],
    )
    labels = read(written("a.csv", text))
    assert rows(labels) == [("u", "ann", "cat"), ("u", "bob", "cat"), ("v", "ann", "dog")]
    np.testing.assert_allclose(labels.columns["cost"], 0.05)
    assert labels.columns["duration"].tolist() == [15, 30, 15]


def test_mturk_questions_and_tasks_by_name(written):
    text = table_of([*HIT, "Input.url", "Answer.animal", "Answer.comment"],
                    ["h1", "a1", "ann", "Submitted", "$0.10", 30, "u", "cat", "nice"])  # fmt: skip
    path = written("a.csv", text)
    with pytest.raises(SeveralQuestionsError, match="'animal', 'comment'"):
        read(path)
    for name in ("animal", "Answer.animal"):
        assert rows(read(path, label=name, task="Input.url")) == [("u", "ann", "cat")]
    with pytest.raises(DataError, match=r"no column 'Input\.urk'; did you mean 'Input\.url'"):
        read(path, label="animal", task="Input.urk")
    with pytest.raises(ParameterError, match=r"read as mturk, where worker='x' has no meaning"):
        read(path, worker="x")
    assert rows(read(path, "csv", task="HITId", worker="WorkerId", label="Answer.comment"))


def test_toloka_aggregated_results_have_no_workers(refused):
    message = refused("a.tsv", "INPUT:image\tOUTPUT:animal\tCONFIDENCE:animal\n1\tcat\t99%\n")
    assert "does not say which worker" in message
    assert "download the assignments" in message


def test_toloka_with_several_inputs_goes_by_its_own_task_id(written):
    text = table_of(
        ["INPUT:image", "INPUT:text", "OUTPUT:animal", "ASSIGNMENT:task_id",
         "ASSIGNMENT:worker_id", "ASSIGNMENT:status"],
        ["u", "hello", "cat", "t1", "ann", "SKIPPED"],
        ["u", "hello", "cat", "t1", "bob", "APPROVED"],
        separator="\t",
    )  # fmt: skip
    path = written("a.tsv", text)
    assert rows(read(path)) == [("t1", "bob", "cat")]
    assert rows(read(path, task="INPUT:image")) == [("u", "bob", "cat")]
    assert rows(read(path, task="image")) == [("u", "bob", "cat")]


# ----------------------------------------------------------------------------------------- Appen


def test_appen_aggregated_report_is_refused(refused):
    message = refused("a.csv", "_unit_id,_golden,animal,animal:confidence\n1,false,cat,1\n")
    assert "download the full report" in message


def test_appen_finds_the_question_without_gold(written):
    text = table_of(["_unit_id", "_worker_id", "_tainted", "image", "animal"],
                    [1, 7, "false", "u", "cat"], [1, 8, "false", "u", "dog"],
                    [1, 9, "TRUE", "u", "dog"])  # fmt: skip
    assert rows(read(written("a.csv", text))) == [("1", "7", "cat"), ("1", "8", "dog")]


def test_appen_with_several_right_classes_has_no_gold_for_them(written):
    text = table_of(["_unit_id", "_worker_id", "_golden", "animal", "animal_gold"],
                    [1, 7, "true", "cat", "cat\ndog"], [2, 7, "true", "cat", "cat"])  # fmt: skip
    assert read_gold(written("a.csv", text)).to_pydict() == {"task": ["2"], "label": ["cat"]}


# --------------------------------------------------------------------------- Prodigy and Argilla


def test_prodigy_binary_questions(written):
    def record(worker, label, decision):
        return {"_input_hash": 1, "_task_hash": 2, "label": label, "answer": decision,
                "_session_id": worker}  # fmt: skip

    decisions = [("ann", "CAT", "accept"), ("bob", "CAT", "reject"), ("bob", "DOG", "accept")]
    path = written("a.jsonl", lines_of(*(record(*decision) for decision in decisions)))
    with pytest.raises(SeveralQuestionsError, match="'CAT', 'DOG'"):
        read(path)
    assert rows(read(path, label="CAT")) == [("1", "ann", "accept"), ("1", "bob", "reject")]


def test_prodigy_without_sessions_is_refused(refused):
    record = {"_input_hash": 1, "_task_hash": 2, "accept": ["x"], "answer": "accept"}
    assert "named sessions" in refused("a.jsonl", lines_of(record))


def test_argilla_drafts_and_several_questions(written):
    record = {"id": "1", "a.responses": ["x", "y"], "a.responses.users": ["u", "v"],
              "a.responses.status": ["submitted", "draft"], "b.responses": [3],
              "b.responses.users": ["u"], "b.responses.status": ["submitted"]}  # fmt: skip
    path = written("a.jsonl", lines_of(record))
    assert rows(read(path, label="a")) == [("1", "u", "x")]
    assert rows(read(path, label="b")) == [("1", "u", "3")]


# ----------------------------------------------------------------------------- doccano, Labelbox


def test_doccano_of_a_collaborative_project_is_refused(refused, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("all.jsonl", lines_of({"id": 1, "label": ["cat"]}))
    for name, content in (
        ("a.zip", (tmp_path / "b.zip").read_bytes()),
        ("all.jsonl", lines_of({"id": 1, "label": ["cat"]})),
    ):
        assert "Share annotations across all users" in refused(name, content, "doccano")


def test_doccano_files_by_themselves_and_csv(written):
    ann = written("ann.jsonl", lines_of({"id": 1, "label": ["cat"]}, {"id": 2, "label": ["dog"]}))
    bob = written("bob.csv", 'id,data,label\n1,hello,cat#dog\n2,bye,""\n')
    sets = read([ann, bob], "doccano")  # the second file shows that several labels are allowed
    assert rows(sets) == [("1", "ann", "cat"), ("1", "bob", "cat|dog"), ("2", "ann", "dog")]
    assert sets.classes.tolist() == ["cat", "dog"]
    assert any("1 not labelled by the user" in note for note in sets.notes)
    assert read(ann, "doccano").classes.tolist() == ["cat", "dog"]
    labels = read([ann, bob], "doccano", type="labels")
    assert labels.classes.tolist() == ["cat", "cat|dog", "dog"]


def test_doccano_with_classes_and_spans_is_refused(refused):
    content = lines_of({"id": 1, "label": ["cat"]}, {"id": 2, "label": [[0, 3, "x"]]})
    assert "has the form spans" in refused("ann.jsonl", content, "doccano")


def test_labelbox_without_label_details_is_refused(refused):
    record = {"data_row": {"id": "r"}, "projects": {"p": {"labels": [{"annotations": {}}]}}}
    assert "label_details" in refused("a.ndjson", lines_of(record))


def test_labelbox_nested_questions_and_checklists(written):
    inner = {"name": "fur", "checklist_answers": [{"value": "long"}, {"value": "grey"}]}
    outer = {"name": "animal", "radio_answer": {"value": "cat", "classifications": [inner]}}
    label = {"label_details": {"created_by": "ann"}, "annotations": {"classifications": [outer]}}
    record = {"data_row": {"id": "r"}, "projects": {"p": {"labels": [label]}}}
    path = written("a.ndjson", lines_of(record))
    with pytest.raises(SeveralQuestionsError, match="'p/animal', 'p/fur'"):
        read(path)
    assert rows(read(path, label="fur")) == [("r", "ann", "grey|long")]
    assert rows(read(path, label="p/animal")) == [("r", "ann", "cat")]


# ------------------------------------------------------------------------------------ Zooniverse

ZOO = ["classification_id", "user_name", "workflow_id", "workflow_version", "metadata",
       "annotations", "subject_ids"]  # fmt: skip


def answer(value, task="T0") -> str:
    return json.dumps([{"task": task, "task_label": "?", "value": value}])


def test_zooniverse_long_cells_combined_tasks_and_drawings(written):
    combined = json.dumps([{"task": "T9", "value": [{"task": "T0", "value": "cat"}]}])
    text = table_of(
        ZOO,
        [1, "ann", 5, "3.1", json.dumps({"x": "y" * 300_000}), answer("cat"), 10],
        [2, "not-logged-in-1f", 5, "3.9", "{}", combined, 10],
        [3, "bob", 5, "3.9", "{}", answer([{"x": 1.5, "y": 2, "tool": 0}]), 10],
        [4, "cem", 5, "3.9", "{}", answer(["dog", "cat"]), 10],
        [5, "dan", 5, "3.9", "{}", answer([{"choice": "LION", "answers": {}}]), 10],
        [6, "eve", 5, "2.9", "{}", answer("cat"), 10],
    )
    labels = read(written("a.csv", text))
    assert rows(labels) == [("10", "ann", "cat"), ("10", "cem", "cat|dog"), ("10", "dan", "LION"),
                            ("10", "not-logged-in-1f", "cat")]  # fmt: skip


def test_zooniverse_workflows_are_questions(written):
    text = table_of(ZOO, [1, "ann", 5, "3.1", "{}", answer("cat"), 10],
                    [2, "ann", 6, "1.1", "{}", answer("big"), 10])  # fmt: skip
    path = written("a.csv", text)
    with pytest.raises(SeveralQuestionsError, match="'5/T0', '6/T0'"):
        read(path)
    with pytest.raises(SeveralQuestionsError, match="'5/T0', '6/T0'"):
        read(path, label="T0")
    assert rows(read(path, label="6/T0")) == [("10", "ann", "big")]


# -------------------------------------------------------------------- Ground Truth, CVAT, others


def test_ground_truth_output_manifest_alone_is_refused(refused):
    line = {"source-ref": "s3://a/1.jpg", "pets": 0, "pets-metadata": {"class-name": "cat"}}
    assert "worker-response" in refused("output.manifest", lines_of(line))


def test_ground_truth_options_that_are_on(written):
    content = json.dumps({"animal": {"cat": True, "dog": False}})
    record = {"datasetObjectId": "9", "annotations": [
        {"workerId": "w", "annotationData": {"content": content}}]}  # fmt: skip
    assert rows(read(written("a.json", json.dumps([record])))) == [("9", "w", "cat")]


JOB = "<meta><job><assignee>{}</assignee></job></meta>"


def test_cvat_without_assignee_is_refused(refused):
    image = '<image name="1.jpg"><tag label="cat"/></image>'
    for meta in (
        JOB.format(""),
        "<meta><task><assignee><username>a</username></assignee></task></meta>",
    ):
        message = refused("a.xml", f"<annotations>{meta}{image}</annotations>")
        assert "export every job by itself" in message


def test_cvat_automatic_tags_are_by_a_model(written):
    meta = JOB.format("<username>ann</username>")
    image = '<image name="1.jpg"><tag label="cat"/><tag label="dog" source="auto"/></image>'
    labels = read(written("a.xml", f"<annotations>{meta}{image}</annotations>"), kinds="all")
    assert rows(labels) == [("1.jpg", "ann", "cat"), ("1.jpg", "model:auto", "dog")]
    assert labels.worker_kind.tolist() == ["human", "model"]


def test_lewidi_lists_of_unequal_length(refused):
    record = {"1": {"annotators": "a,b", "annotations": "0", "soft_label": {}}}
    assert "2 workers and 1 labels" in refused("a.json", json.dumps(record))


def test_scale_is_refused(refused):
    record = {"task_id": "1", "response": {}, "callback_url": "https://example.org"}
    assert "ask Scale" in refused("a.json", json.dumps([record]))


def test_cleanlab_numbers_that_gaps_made_decimal(written):
    text = ",0,1\n7,2.0,\n8,,2.0\n"
    assert rows(read(written("a.csv", text))) == [("7", "0", "2"), ("8", "1", "2")]
    assert rows(read(written("c.csv", "a1,a2\nx,\n,x\n"))) == [("0", "a1", "x"), ("1", "a2", "x")]


def test_cleanlab_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a1": [1.0, None], "a2": pa.array([None, 1.0])}), path)
    assert rows(read(path, "cleanlab")) == [("0", "a1", "1"), ("1", "a2", "1")]


def hugging_face_table() -> pa.Table:
    features = {"label": {"feature": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}
    table = pa.table({
        "id": ["a", "b"], "image": [{"bytes": b"x"}, {"bytes": b"y"}],
        "worker_ids": [["ann", "bob"], []], "label": [[0, 1], []],
    })  # fmt: skip
    about = json.dumps({"info": {"features": features}})
    return table.replace_schema_metadata({"huggingface": about})


def test_hugging_face_parquet_and_folder_with_class_names(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(hugging_face_table(), path)
    expected = [("a", "ann", "cat"), ("a", "bob", "dog")]
    assert rows(read(path)) == expected
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "dataset_info.json").write_text("{}")
    table = hugging_face_table()
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    assert rows(read(folder)) == expected
    (folder / "data-00000-of-00001.arrow").write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged or cut off"):
        read(folder)


def test_hugging_face_lists_of_unequal_length(refused):
    assert "2 workers and 1 labels" in refused(
        "a.jsonl",
        lines_of(
            {"id": 1, "workers": ["a"], "labels": [1]}, {"workers": ["a", "b"], "labels": [1]}
        ),
        "hugging-face",
    )


def test_more_workers_and_labels_than_sixteen_bits(written):
    size = 70_000
    text = json.dumps({"1": {f"w{j}": j for j in range(size)}})
    labels = read(written("a.json", text), type="labels")
    assert (labels.n_workers, labels.n_classes) == (size, size)
    assert all(f"w{label}" == worker for _, worker, label in rows(labels))
