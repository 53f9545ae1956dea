"""Annotations in a campaign: whichever snapshots are taken, they end in the same answers."""

from __future__ import annotations

import itertools
import json
import time

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


def look(fake, mirror) -> Told:
    return mirror.take_snapshot(snapshot(fake), mirror.mark())


def test_submit_edit_skip_delete(fake, campaign, mirror):
    fake.annotate(101, 5, "good")
    assert look(fake, mirror) == Told(new=1)
    assert answers(campaign) == {("101", "5"): "good"}
    fake.edit(1, "bad")
    assert look(fake, mirror) == Told(new=1)
    assert answers(campaign) == {("101", "5"): "bad"}
    fake.annotate(102, 5, None)  # skipped
    assert look(fake, mirror) == Told()
    fake.annotate(102, 6, "good", result=[])  # empty
    assert look(fake, mirror) == Told()
    fake.edit(2, "good")  # no longer skipped
    assert look(fake, mirror) == Told(new=1)
    fake.delete(1)
    assert look(fake, mirror) == Told(withdrawn=1)
    assert answers(campaign) == {("102", "5"): "good"}


def test_another_look_adds_no_row(fake, campaign, mirror):
    for change in (lambda: fake.annotate(101, 5, "good"), lambda: fake.edit(1, "bad"),
                   lambda: fake.annotate(102, 6, "bad")):  # fmt: skip
        change()
        for _ in range(3):
            look(fake, mirror)
    assert n_rows(campaign) == 3
    assert look(fake, mirror) == Told()
    assert answers(campaign) == {("101", "5"): "bad", ("102", "6"): "bad"}


@pytest.mark.parametrize("looks", list(itertools.product((False, True), repeat=4)))
def test_missed_looks_do_not_matter(fake, campaign, mirror, looks):
    changes = [lambda: fake.annotate(101, 5, "good"), lambda: fake.annotate(102, 5, "bad"),
               lambda: fake.edit(1, "bad"), lambda: fake.delete(2)]  # fmt: skip
    for change, taken in zip(changes, looks, strict=True):
        change()
        if taken:
            look(fake, mirror)
    look(fake, mirror)
    assert answers(campaign) == {("101", "5"): "bad"}


def test_an_older_snapshot_does_not_undo_a_newer_one(fake, campaign, mirror):
    fake.annotate(101, 5, "good")
    look(fake, mirror)
    mark, old = mirror.mark(), snapshot(fake)
    fake.edit(1, "bad")
    fake.annotate(102, 5, "good")
    look(fake, mirror)
    assert mirror.take_snapshot(old, mark) == Told()
    assert answers(campaign) == {("101", "5"): "bad", ("102", "5"): "good"}
    mark, old = mirror.mark(), snapshot(fake)
    fake.delete(1)
    look(fake, mirror)
    mirror.take_snapshot(old, mark)
    assert answers(campaign) == {("102", "5"): "good"}


def test_a_time_to_come_does_not_outlast_corrections(fake, campaign, mirror):
    fake.annotate(101, 5, "good", updated_at="2999-01-01T00:00:00Z")
    look(fake, mirror)
    assert campaign._store.rows("SELECT MAX(updated) FROM label_studio")[0][0] <= time.time()
    fake.tasks[101]["annotations"][0]["updated_at"] = "2024-11-18T00:00:00Z"
    fake.annotate(101, 5, "bad", updated_at="2024-11-19T00:00:00Z")
    look(fake, mirror)
    assert answers(campaign) == {("101", "5"): "bad"}


def test_two_annotations_of_one_user(fake, campaign, mirror):
    for label in ("good", "bad"):
        fake.annotate(101, 5, label)
        look(fake, mirror)
    assert answers(campaign) == {("101", "5"): "bad"}
    fake.delete(2)
    look(fake, mirror)
    assert answers(campaign) == {("101", "5"): "good"}  # the other one is there still
    fake.edit(1, "bad")
    fake.annotate(101, 5, None)
    look(fake, mirror)
    assert answers(campaign) == {("101", "5"): "bad"}  # a skip does not replace it


def test_several_at_once_and_deleted_tasks(fake, campaign, mirror):
    for task in (101, 102):
        fake.annotate(task, 1, "good")
    assert look(fake, mirror) == Told(new=2)
    fake.delete_task(101)
    assert mirror.remove_tasks([101]) == Told(withdrawn=1)
    assert mirror.remove_tasks([101]) == Told()
    assert answers(campaign) == {("102", "1"): "good"}


def test_new_tasks_join(fake, campaign, mirror):
    fake.add_task(104)
    assert look(fake, mirror) == Told()
    assert "104" in campaign.labels.tasks
    fake.add_task(105)
    fake.annotate(105, 1, "good")
    look(fake, mirror)
    assert answers(campaign) == {("105", "1"): "good"}


def test_new_tasks_do_not_join_a_campaign_with_fixed_tasks(fake):
    with Campaign(["101", "102"]) as campaign:
        mirror = AnnotationMirror(campaign, LINK)
        for task in (101, 103):
            fake.annotate(task, 1, "good")
        assert look(fake, mirror) == Told(new=1)
        assert (campaign.n_tasks, mirror.left_out) == (2, {103})
        assert answers(campaign) == {("101", "1"): "good"}


@pytest.mark.parametrize(
    "change",
    [{"id": "1"}, {"id": None}, {"id": 2**70}, {"id": True}, {"completed_by": None},
     {"completed_by": "\ud800"},
     {"result": [{"from_name": "mood", "type": "choices", "value": {"choices": ["\ud800"]}}]},
     {"completed_by": {}}, {"result": None}, {"result": {"a": 1}}, {"result": [[1]]},
     {"result": [{"from_name": "other", "type": "choices", "value": {"choices": ["x"]}}]},
     {"result": [{"from_name": "mood", "type": "choices", "value": "x"}]},
     {"result": [{"from_name": "mood", "type": "rectanglelabels", "value": {"x": 1}}]}],
)  # fmt: skip
def test_annotations_without_an_answer_are_none(fake, campaign, mirror, change):
    fake.annotate(101, 5, "good", **change)
    assert look(fake, mirror) == Told()
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
        fake.annotate(101, user, label)
        assert look(fake, mirror) == Told(new=1)
        assert answers(campaign)["101", str(user)] == label


def test_a_label_that_is_too_long_is_refused(fake, campaign, mirror):
    fake.annotate(101, 5, "a" * 20_000)
    assert look(fake, mirror) == Told(refused=1)


def test_ids_of_files_may_be_numbers(fake):
    with Campaign([101, 102, 103], open_tasks=True) as campaign:
        mirror = AnnotationMirror(campaign, LINK)
        fake.annotate(102, 5, "good")
        look(fake, mirror)
        assert answers(campaign) == {(102, "5"): "good"}
        fake.add_task(104)
        fake.annotate(104, 5, "good")
        look(fake, mirror)
        assert answers(campaign) == {(102, "5"): "good", (104, "5"): "good"}


def test_workers_and_classes_may_be_numbers(fake):
    with Campaign(["101"], classes=[1, 2], workers=[5]) as campaign:
        mirror = AnnotationMirror(campaign, LINK)
        fake.annotate(101, 5, "2")
        assert look(fake, mirror) == Told(new=1)
        fake.annotate(101, 6, "two")
        assert look(fake, mirror) == Told(refused=1)
        assert answers(campaign) == {("101", 5): 2}


def test_ids_from_the_data(fake):
    link = Link("http://127.0.0.1:8080", 7, "mood", "key")
    with Campaign(["k101", "k102", "k103"]) as campaign:
        fake.annotate(102, 5, "good")
        look(fake, AnnotationMirror(campaign, link))
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
        fake.annotate(task, user, label)
    look(fake, mirror)
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
