"""Annotations in a campaign: events and snapshots in any order end in the same answers."""

from __future__ import annotations

import itertools
import json

import pytest
from tests.support.fake_label_studio import FakeLabelStudio

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_mirror import (
    AnnotationMirror,
    Link,
    Told,
    counting_answers,
    find_control,
)
from wisecrowd.core.exceptions import DataError

LINK = Link("http://127.0.0.1:8080", 7, "mood")


def answers(campaign) -> dict[tuple[str, str], str]:
    table = campaign.labels.to_dict()
    return {(task, worker): label for task, worker, label in
            zip(table["task"], table["worker"], table["label"], strict=True)}  # fmt: skip


def n_rows(campaign) -> int:
    return campaign._store.rows("SELECT COUNT(*) FROM answers")[0][0]


@pytest.fixture
def fake():
    return FakeLabelStudio(n_tasks=3)


@pytest.fixture
def campaign():
    with Campaign(["101", "102", "103"], open_tasks=True) as made:
        yield made


@pytest.fixture
def mirror(campaign):
    return AnnotationMirror(campaign, LINK)


def snapshot(fake):
    return json.loads(json.dumps(list(fake.tasks.values())))


def test_submit_edit_skip_delete(fake, campaign, mirror):
    assert mirror.receive(fake.annotate(101, 5, "good")) == Told(new=1)
    assert answers(campaign) == {("101", "5"): "good"}
    assert mirror.receive(fake.edit(1, "bad")) == Told(new=1)
    assert answers(campaign) == {("101", "5"): "bad"}
    assert mirror.receive(fake.annotate(102, 5, None)) == Told()  # skipped
    assert mirror.receive(fake.annotate(102, 6, "good", result=[])) == Told()  # empty
    assert mirror.receive(fake.edit(2, "good")) == Told(new=1)  # no longer skipped
    assert mirror.receive(fake.delete(1)) == Told(withdrawn=1)
    assert answers(campaign) == {("102", "5"): "good"}


def test_redelivery_adds_no_row(fake, campaign, mirror):
    events = [fake.annotate(101, 5, "good"), fake.edit(1, "bad"), fake.annotate(102, 6, "bad")]
    for event in events * 3:
        mirror.receive(event)
    assert n_rows(campaign) == 3
    assert mirror.take_snapshot(snapshot(fake), mirror.mark()) == Told()
    assert answers(campaign) == {("101", "5"): "bad", ("102", "6"): "bad"}


@pytest.mark.parametrize("n", [3, 4])
def test_any_order_of_events_ends_in_the_same_answers(n):
    fake = FakeLabelStudio(n_tasks=2)
    events = [fake.annotate(101, 5, "good"), fake.edit(1, "bad"), fake.delete(1),
              fake.annotate(101, 5, "good")]  # fmt: skip
    for order in itertools.permutations(events[:n]):
        with Campaign(["101", "102"]) as campaign:
            mirror = AnnotationMirror(campaign, LINK)
            for event in order:
                mirror.receive(event)
            assert answers(campaign) == ({("101", "5"): "good"} if n == 4 else {})


@pytest.mark.parametrize("lost", range(4))
def test_a_snapshot_brings_what_a_webhook_has_missed(fake, campaign, mirror, lost):
    events = [fake.annotate(101, 5, "good"), fake.annotate(102, 5, "bad"), fake.edit(1, "bad"),
              fake.delete(2)]  # fmt: skip
    for event in events[:lost] + events[lost + 1 :]:
        mirror.receive(event)
    mirror.take_snapshot(snapshot(fake), mirror.mark())
    assert answers(campaign) == {("101", "5"): "bad"}


def test_a_snapshot_from_before_an_event_does_not_undo_it(fake, campaign, mirror):
    mirror.receive(fake.annotate(101, 5, "good"))
    mark, old = mirror.mark(), snapshot(fake)
    mirror.receive(fake.edit(1, "bad"))
    mirror.receive(fake.annotate(102, 5, "good"))
    assert mirror.take_snapshot(old, mark) == Told()
    assert answers(campaign) == {("101", "5"): "bad", ("102", "5"): "good"}
    mark, old = mirror.mark(), snapshot(fake)
    mirror.receive(fake.delete(1))
    mirror.take_snapshot(old, mark)
    assert answers(campaign) == {("102", "5"): "good"}


def test_a_forged_event_lasts_until_the_next_snapshot(fake, campaign, mirror):
    fake.annotate(101, 5, "good")
    forged = fake.payload("ANNOTATION_UPDATED", fake.tasks[101]["annotations"][0])
    forged["annotation"].update(updated_at="2999-01-01T00:00:00Z", completed_by=5)
    forged["annotation"]["result"][0]["value"]["choices"] = ["bad"]
    mirror.receive(forged)
    unknown = json.loads(json.dumps(forged))
    unknown["annotation"].update(id=999, completed_by=6)
    mirror.receive(unknown)
    assert answers(campaign) == {("101", "5"): "bad", ("101", "6"): "bad"}
    assert mirror.take_snapshot(snapshot(fake), mirror.mark()) == Told(new=1, withdrawn=1)
    assert answers(campaign) == {("101", "5"): "good"}


def test_two_annotations_of_one_user(fake, campaign, mirror):
    for event in [fake.annotate(101, 5, "good"), fake.annotate(101, 5, "bad")]:
        mirror.receive(event)
    assert answers(campaign) == {("101", "5"): "bad"}
    mirror.receive(fake.delete(2))
    assert answers(campaign) == {("101", "5"): "good"}  # the other one is there still
    mirror.receive(fake.edit(1, "bad"))
    fake.annotate(101, 5, None)
    mirror.take_snapshot(snapshot(fake), mirror.mark())
    assert answers(campaign) == {("101", "5"): "bad"}  # a skip does not replace it


def test_several_at_once_and_deleted_tasks(fake, campaign, mirror):
    made = [fake.annotate(task, 1, "good") for task in (101, 102)]
    together = made[0] | {
        "action": "ANNOTATIONS_CREATED",
        "annotation": [one["annotation"] for one in made], "task": [one["task"] for one in made],
    }  # fmt: skip
    assert mirror.receive(together) == Told(new=2)
    assert mirror.receive(fake.delete_task(101)) == Told(withdrawn=1)
    assert mirror.receive(together) == Told()  # late
    assert answers(campaign) == {("102", "1"): "good"}


def test_new_tasks_join(fake, campaign, mirror):
    fake.add_task(104)
    created = {"action": "TASKS_CREATED", "tasks": [fake.tasks[104]], "project": {"id": 7}}
    assert mirror.receive(created) == Told()
    assert "104" in campaign.labels.tasks
    fake.add_task(105)
    mirror.receive(fake.annotate(105, 1, "good"))
    assert answers(campaign) == {("105", "1"): "good"}


@pytest.mark.parametrize(
    "payload",
    [None, [], "x", {}, {"action": "ANNOTATION_CREATED"}, {"action": "PROJECT_UPDATED"},
     {"action": "ANNOTATION_CREATED", "project": {"id": 8}, "annotation": {"id": 1}},
     {"action": ["ANNOTATION_CREATED"], "project": {"id": 7}}, {"action": 5, "project": 7}],
)  # fmt: skip
def test_what_does_not_count_is_ignored(campaign, mirror, payload):
    assert mirror.receive(payload) is None
    assert n_rows(campaign) == 0


@pytest.mark.parametrize(
    "change",
    [{"id": "1"}, {"id": None}, {"id": 2**70}, {"id": True}, {"task": 2**70}, {"task": 999},
     {"task": [1]}, {"completed_by": None}, {"completed_by": "\ud800"},
     {"result": [{"from_name": "mood", "type": "choices", "value": {"choices": ["\ud800"]}}]},
     {"completed_by": {}}, {"result": None}, {"result": {"a": 1}}, {"result": [[1]]},
     {"result": [{"from_name": "other", "type": "choices", "value": {"choices": ["x"]}}]},
     {"result": [{"from_name": "mood", "type": "choices", "value": "x"}]},
     {"result": [{"from_name": "mood", "type": "rectanglelabels", "value": {"x": 1}}]}],
)  # fmt: skip
def test_annotations_without_an_answer_are_none(fake, campaign, mirror, change):
    event = fake.annotate(101, 5, "good")
    event["annotation"].update(change)
    assert mirror.receive(event) == Told()
    assert n_rows(campaign) == 0


def test_a_label_outside_of_the_classes_is_counted_as_refused(fake):
    with Campaign(["101", "102", "103"], classes=["good", "bad"]) as campaign:
        mirror = AnnotationMirror(campaign, LINK)
        for label in ("odd", "good"):
            fake.annotate(101, len(label), label)
        assert mirror.take_snapshot(snapshot(fake), mirror.mark()) == Told(new=1, refused=1)
        assert answers(campaign) == {("101", "4"): "good"}


def test_any_text_is_a_label(fake, campaign, mirror):
    for user, label in enumerate(("caf\xe9 \U0001f600", "<script>", "\x1b[2J", "a" * 10_000), 1):
        assert mirror.receive(fake.annotate(101, user, label)) == Told(new=1)
        assert answers(campaign)["101", str(user)] == label


def test_ids_of_files_may_be_numbers(fake):
    with Campaign([101, 102, 103]) as campaign:
        AnnotationMirror(campaign, LINK).receive(fake.annotate(102, 5, "good"))
        assert answers(campaign) == {(102, "5"): "good"}
        fake.add_task(104)
        AnnotationMirror(campaign, LINK).receive(fake.annotate(104, 5, "good"))
        assert answers(campaign) == {(102, "5"): "good", (104, "5"): "good"}


def test_workers_and_classes_may_be_numbers(fake):
    with Campaign(["101"], classes=[1, 2], workers=[5]) as campaign:
        mirror = AnnotationMirror(campaign, LINK)
        assert mirror.receive(fake.annotate(101, 5, "2")) == Told(new=1)
        assert mirror.receive(fake.annotate(101, 6, "two")) == Told(refused=1)
        assert answers(campaign) == {("101", 5): 2}


def test_ids_from_the_data(fake):
    link = Link("http://127.0.0.1:8080", 7, "mood", "key")
    with Campaign(["k101", "k102", "k103"]) as campaign:
        AnnotationMirror(campaign, link).receive(fake.annotate(102, 5, "good"))
        assert answers(campaign) == {("k102", "5"): "good"}
    assert [row[0] for row in counting_answers(snapshot(fake), link)] == ["k102"]


def test_the_link_is_kept_and_guarded(tmp_path):
    path = tmp_path / "campaign.db"
    with Campaign(["101"], path=path) as campaign:
        assert Link.of(campaign) is None
        LINK.store(campaign)
    with Campaign.open(path) as campaign:
        assert Link.of(campaign) == LINK
        Link("http://elsewhere", 7, "mood").store(campaign)  # the server may move
        with pytest.raises(DataError, match="belongs to project 7"):
            Link("http://elsewhere", 8, "mood").store(campaign)


def test_what_is_pulled_is_what_counts(fake, campaign, mirror):
    for task, user, label in [(101, 5, "good"), (101, 5, "bad"), (102, 6, None), (103, 6, "x|y")]:
        mirror.receive(fake.annotate(task, user, label))
    rows = counting_answers(snapshot(fake), LINK)
    assert {(task, worker): label for task, worker, label, _ in rows} == answers(campaign)
    assert [row[3] for row in rows] == sorted(row[3] for row in rows)


def test_controls():
    project = {"id": 7, "parsed_label_config": {
        "mood": {"type": "Choices"}, "stars": {"type": "Rating"}, "note": {"type": "TextArea"},
    }}  # fmt: skip
    assert find_control(project, "stars") == "stars"
    with pytest.raises(DataError, match=r"'mood', 'stars'; choose one with label="):
        find_control(project, None)
    with pytest.raises(DataError, match=r"no control 'star' \(did you mean 'stars'\?\)"):
        find_control(project, "star")
    for config in ({"note": {"type": "TextArea"}}, None, {}):
        with pytest.raises(DataError, match="no control whose answers are classes"):
            find_control({"id": 7, "parsed_label_config": config}, None)
