"""The client of Label Studio against a small server: tokens, pages, failures and refusals."""

from __future__ import annotations

import pytest
from tests.support.fake_label_studio import PERSONAL, TOKEN, FakeLabelStudio, serving

from wisecrowd.acquire import label_studio_api as api
from wisecrowd.acquire.label_studio_api import (
    LabelStudioClient,
    LabelStudioError,
    NotThereError,
    UnreachableError,
)
from wisecrowd.core.exceptions import ParameterError


@pytest.fixture
def fake():
    return FakeLabelStudio()


@pytest.fixture
def url(fake, monkeypatch):
    monkeypatch.setattr(api, "FIRST_WAIT", 0.0)
    with serving(fake) as address:
        yield address


@pytest.fixture
def client(url):
    return LabelStudioClient(url, TOKEN, attempts=3)


def test_a_legacy_token_and_a_personal_one(url, fake):
    for token in (TOKEN, PERSONAL):
        assert LabelStudioClient(url, token).project(7)["id"] == 7
    personal = LabelStudioClient(url, PERSONAL)
    for _ in range(3):
        personal.project(7)
    # Exchanged once for each client, and not for each request.
    assert fake.requests.count(("POST", "/api/token/refresh/")) == 2


def test_an_access_token_is_exchanged_in_time(url, fake, monkeypatch):
    monkeypatch.setattr(api, "ACCESS_SECONDS", 0.0)
    personal = LabelStudioClient(url, PERSONAL)
    personal.project(7)
    personal.project(7)
    assert fake.requests.count(("POST", "/api/token/refresh/")) == 2


def test_an_access_token_that_has_expired_early(url, fake):
    personal = LabelStudioClient(url, PERSONAL)
    personal.project(7)
    fake.failures[:] = [401]
    assert personal.project(7)["id"] == 7
    assert fake.requests.count(("POST", "/api/token/refresh/")) == 2


@pytest.mark.parametrize("token", ["c" * 40, "wrong.personal.token"])
def test_a_wrong_token_is_explained_and_not_shown(url, token):
    with pytest.raises(LabelStudioError, match="refuses the token") as caught:
        LabelStudioClient(url, token).project(7)
    assert token not in str(caught.value)


def test_no_project(client):
    with pytest.raises(NotThereError, match=r"has no /api/projects/8/.*correct the number"):
        client.project(8)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8080", "file:///etc/passwd", "http://", "http://user:word@host"]
)
def test_what_is_not_an_address(url):
    with pytest.raises(ParameterError, match="is not the address of a server"):
        LabelStudioClient(url, TOKEN)


@pytest.mark.parametrize("token", ["", "two words", "line\nend", "caf\xe9"])
def test_what_is_not_a_token(token):
    with pytest.raises(ParameterError, match="The token is empty or has characters"):
        LabelStudioClient("http://127.0.0.1:1", token)


def test_no_server(monkeypatch):
    waits = []
    monkeypatch.setattr(api.time, "sleep", waits.append)
    with pytest.raises(UnreachableError, match="No Label Studio answers at"):
        LabelStudioClient("http://127.0.0.1:1", TOKEN, attempts=4).project(7)
    assert waits == [0.5, 1.0, 2.0]  # twice as long every time


def test_failures_on_the_way_are_tried_again(client, fake):
    fake.failures[:] = ["drop", 503]
    assert client.project(7)["id"] == 7
    fake.failures[:] = [503, 503, 503]
    with pytest.raises(UnreachableError, match="status 503"):
        client.project(7)


def test_a_post_that_may_have_arrived_is_not_sent_twice(client, fake):
    rows = [{"task": 101, "result": [], "score": 0.5, "model_version": "v"}]
    for failure in ("drop", 503):
        fake.failures[:] = [failure]
        with pytest.raises(UnreachableError):
            client.add_predictions(7, rows)
    assert len(fake.requests) == 2


def test_a_redirect_does_not_carry_the_token_away(client, fake):
    fake.failures[:] = [302]
    with pytest.raises(LabelStudioError, match="redirects /api/projects/7/"):
        client.project(7)


def test_another_kind_of_server(client, fake, monkeypatch):
    for content in ([], {}, "text"):
        monkeypatch.setattr(fake, "reply", lambda *given, made=content: (200, made))
        with pytest.raises(LabelStudioError, match="does not answer as Label Studio"):
            client.project(7)
        with pytest.raises(LabelStudioError, match="does not answer as Label Studio"):
            list(client.tasks(7))


def test_annotations_without_a_result_are_not_taken_for_empty_ones(client, fake):
    fake.annotate(101, 1, "good")
    del fake.tasks[101]["annotations"][0]["result"]
    with pytest.raises(LabelStudioError, match="does not answer as Label Studio"):
        list(client.tasks(7))


def test_a_reply_that_is_too_long(client, monkeypatch):
    monkeypatch.setattr(api, "MOST_BYTES", 10)
    with pytest.raises(LabelStudioError, match="more than 10 bytes"):
        client.project(7)


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_have_every_task_once(url, monkeypatch, newest_first):
    monkeypatch.setattr(api, "PAGE", 4)
    with serving(FakeLabelStudio(n_tasks=8)) as address:
        pages = list(LabelStudioClient(address, TOKEN).tasks(7, newest_first))
    numbers = [task["id"] for page in pages for task in page]
    assert numbers == sorted(range(101, 109), reverse=newest_first)
    assert [len(page) for page in pages] == [4, 4]


def test_dropped_predictions_are_noticed(client):
    row = {"task": 101, "result": [], "score": 0.5, "model_version": "v"}
    client.add_predictions(7, [row])
    with pytest.raises(LabelStudioError, match="took 1 of 2 predictions"):
        client.add_predictions(7, [row, row | {"score": 1.5}])
    with pytest.raises(LabelStudioError, match=r"status 400 \(task ids\)"):
        client.add_predictions(7, [row | {"task": 999}])


def test_a_webhook_is_made_once_and_keeps_its_actions(client, fake):
    for number in range(2):
        new = client.set_webhook(7, "http://127.0.0.1:9/hook", ["ANNOTATION_CREATED"], {"X": "1"})
        assert new == (number == 0)
    assert [hook["actions"] for hook in fake.webhooks] == [["ANNOTATION_CREATED"]]


def test_whether_the_token_is_sent_in_the_clear():
    private = ["http://127.0.0.1:8080", "http://localhost:1", "https://example.org"]
    assert all(LabelStudioClient(url, TOKEN).is_private for url in private)
    assert not LabelStudioClient("http://example.org", TOKEN).is_private
