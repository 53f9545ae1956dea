"""A campaign in step with a small Label Studio: what is read and sent, and the order served."""

from __future__ import annotations

import random

import pytest
from tests.support.fake_label_studio import TOKEN, FakeLabelStudio, serving

from wisecrowd.acquire import label_studio_api as api
from wisecrowd.acquire import label_studio_watch as watching
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_api import LabelStudioClient, UnreachableError
from wisecrowd.acquire.label_studio_mirror import Link, Told
from wisecrowd.acquire.label_studio_watch import PREFIX, Watcher, linked, task_names
from wisecrowd.core.exceptions import DataError

LABELS = ("good", "bad")


@pytest.fixture
def fake():
    return FakeLabelStudio(n_tasks=8)


@pytest.fixture
def client(fake, monkeypatch):
    monkeypatch.setattr(api, "FIRST_WAIT", 0.0)
    with serving(fake) as url:
        yield LabelStudioClient(url, TOKEN, attempts=2)


def watcher_of(client, n=4, **rules):
    link = linked(client, 7, None, None)
    campaign = Campaign(task_names(client, link), open_tasks=True, **rules)
    return Watcher(client, campaign, link, n), campaign


def versions(fake):
    return {one["model_version"] for one in fake.predictions}


def test_annotators_get_our_order(client, fake):
    watcher, _ = watcher_of(client, max_labels=2, stop=None)
    rng = random.Random(0)
    served = 0
    while (done := watcher.cycle()).stop is None:
        assert done.pushed is not None
        order = list(done.pushed.tasks)
        for user in (1, 2, 3):
            free = [task for task in order if not fake.has_annotated(user, task)]
            if free:
                task = fake.next_task(user)
                assert task == free[0]
                order.remove(task)  # its place is taken
                fake.annotate(task, user, rng.choice(LABELS))
                served += 1
    assert done.stop == "max_labels"
    assert served == 8 * 2 == done.n_answers
    assert fake.next_task(1) is None  # every task has its maximum


def test_a_push_sets_what_the_order_needs_and_leaves_one_version(client, fake):
    watcher, _ = watcher_of(client)
    first = watcher.cycle().pushed
    assert first.replaced == {"sampling": "Sequential sampling", "maximum_annotations": 3,
                              "show_collab_predictions": True}  # fmt: skip
    assert fake.project["sampling"] == "Uncertainty sampling"
    assert all(one["result"] == [] for one in fake.predictions)
    fake.annotate(fake.next_task(1), 1, "good")
    second = watcher.cycle().pushed
    assert second.replaced == {}
    assert first.version != second.version == fake.project["model_version"]
    assert versions(fake) == {second.version}
    assert len(fake.tasks) == 8
    assert len({one["task"] for one in fake.predictions}) == len(fake.predictions) == 4


def test_others_predictions_stay(client, fake):
    fake.predictions.append({"task": 101, "result": [], "score": 0.1, "model_version": "theirs"})
    watcher, _ = watcher_of(client)
    watcher.cycle()
    assert "theirs" in versions(fake)


def test_nothing_new_sends_nothing(client, fake):
    watcher, campaign = watcher_of(client)
    watcher.cycle()
    fake.requests.clear()
    assert watcher.cycle().pushed is None
    assert {method for method, _ in fake.requests} == {"GET"}
    # A new process sends the same order, which is there already.
    again = Watcher(client, campaign, Link.of(campaign) or linked(client, 7, None, None), 4)
    fake.requests.clear()
    assert not again.cycle().pushed.is_new
    assert {method for method, _ in fake.requests} == {"GET"}


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_push_that_was_cut_off_is_completed(client, fake, cut):
    watcher, campaign = watcher_of(client)
    watcher.cycle()
    for user in (1, 2):
        fake.annotate(fake.next_task(user), user, "good")
    told = watcher.read()
    assert told == Told(new=2)
    done, original = [], client.call

    def call(method, path, body=None):
        if len(done) == cut:
            raise UnreachableError("killed")
        done.append(path)
        return original(method, path, body)

    def push_until_killed():
        while True:
            watcher._push(None)
            fake.annotate(fake.next_task(3), 3, "bad")
            watcher.read()

    client.call = call
    with pytest.raises(UnreachableError):
        push_until_killed()
    client.call = original
    again = Watcher(client, campaign, linked(client, 7, None, None), 4)
    pushed = again.cycle().pushed
    assert versions(fake) == {pushed.version} == {fake.project["model_version"]}
    assert len(fake.predictions) == len(pushed.tasks) == 4
    assert fake.next_task(9) == pushed.tasks[0]


def test_only_what_has_changed_is_read(client, fake, monkeypatch):
    monkeypatch.setattr(api, "PAGE", 2)
    monkeypatch.setattr(watching, "MARGIN", 0.0)
    watcher, _ = watcher_of(client)
    watcher.read()
    fake.annotate(103, 1, "good")
    fake.requests.clear()
    assert watcher.read() == Told(new=1)
    assert fake.requests.count(("GET", "/api/tasks/")) == 2  # of four pages
    fake.edit(1, "bad")
    assert watcher.read() == Told(new=1)
    fake.delete(1)
    assert watcher.read() == Told(withdrawn=1)


def test_answers_that_are_there_already_come_in_the_order_of_time(client, fake):
    for task, user in [(103, 1), (101, 1), (103, 2), (102, 1), (101, 2)]:
        fake.annotate(task, user, "good")
    watcher, campaign = watcher_of(client)
    assert watcher.read() == Told(new=5)
    rows = campaign._store.rows(
        "SELECT id FROM answers JOIN tasks ON task = code ORDER BY row"
    )  # fmt: skip
    assert [row[0] for row in rows] == ['"103"', '"101"', '"103"', '"102"', '"101"']


def test_tasks_that_come_and_go(client, fake):
    watcher, campaign = watcher_of(client, n=20)
    fake.annotate(101, 1, "good")
    watcher.cycle()
    fake.delete_task(101)
    fake.add_task(150)
    fake.delete_task(102)
    done = watcher.cycle()
    assert done.told == Told(withdrawn=1)
    assert sorted(done.pushed.tasks) == sorted(fake.tasks)
    assert "150" in campaign.labels.tasks


def test_a_task_deleted_between_reading_and_sending(client, fake, monkeypatch):
    watcher, _ = watcher_of(client, n=20)
    read = watcher.read

    def read_and_delete(full=False):
        told = read(full)
        if not full:
            fake.delete_task(103)
        return told

    monkeypatch.setattr(watcher, "read", read_and_delete)
    assert 103 not in watcher.cycle().pushed.tasks


def test_a_task_that_a_page_has_missed_is_not_deleted(client, fake, monkeypatch):
    watcher, _ = watcher_of(client)
    fake.annotate(101, 1, "good")
    watcher.read()
    whole = client.tasks

    def without_first(project, newest_first=False):
        for page in whole(project, newest_first):
            yield [task for task in page if task["id"] != 101]

    monkeypatch.setattr(client, "tasks", without_first)
    assert watcher.read(full=True) == Told()


def test_stopping_closes_what_is_labelled(client, fake):
    watcher, _ = watcher_of(client, n=8, budget=10, stop=None)
    for _ in range(3):
        watcher.cycle()
        for user in (1, 2, 3, 4):
            task = fake.next_task(user)
            if task is not None:
                fake.annotate(task, user, "good")
    done = watcher.cycle()
    assert (done.stop, done.n_answers) == ("budget", 10)
    assert done.pushed.tasks == []
    assert [fake.next_task(user) for user in (1, 5)] == [None, None]
    assert not any(version.startswith(PREFIX) for version in versions(fake))


def test_a_task_that_everybody_skips_does_not_block_the_rest(client, fake):
    watcher, _ = watcher_of(client, n=8, max_labels=2, stop=None)
    watcher.cycle()
    for user in (1, 2):
        fake.annotate(101, user, None)
        fake.annotate(102, user, "good")
    order = watcher.cycle().pushed.tasks
    assert order[-1] == 101
    assert 102 not in order


def test_a_new_worker_gets_tasks_that_all_known_ones_have_answered(client, fake):
    watcher, _ = watcher_of(client, n=8, stop=None)
    watcher.cycle()
    for task in list(fake.tasks):
        fake.annotate(task, 1, "good")
    watcher.cycle()
    assert fake.next_task(1) is None
    assert fake.next_task(2) is not None


def test_projects_that_cannot_be_used(client, fake):
    with pytest.raises(DataError, match="has no 'nothing' in its data"):
        task_names(client, linked(client, 7, None, "nothing"))
    assert task_names(client, linked(client, 7, None, "key"))[0] == "k101"
    fake.tasks.clear()
    with pytest.raises(DataError, match="Project 7 has no tasks"):
        task_names(client, linked(client, 7, None, None))
    fake.project["parsed_label_config"] = {"note": {"type": "TextArea"}}
    with pytest.raises(DataError, match="no control whose answers are classes"):
        linked(client, 7, None, None)
