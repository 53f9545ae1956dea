"""Webhooks of Label Studio at the service of a campaign."""

from __future__ import annotations

import json

import pytest
from tests.support.fake_label_studio import FakeLabelStudio

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.label_studio_mirror import AnnotationMirror, Link, n_hints, webhook_secret
from wisecrowd.acquire.service import WEBHOOK_HEADER, WEBHOOKS, make_app
from wisecrowd.acquire.service_guard import MOST_BYTES

# Which client library starlette prefers does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
SECRET = "a long enough secret"


@pytest.fixture
def fake():
    return FakeLabelStudio(n_tasks=2)


@pytest.fixture
def campaign(tmp_path):
    with Campaign(["101", "102"], path=tmp_path / "campaign.db") as made:
        Link("http://127.0.0.1:8080", 7, "mood").store(made)
        yield made


@pytest.fixture
def client(campaign):
    from starlette.testclient import TestClient

    with TestClient(make_app(campaign), base_url="http://127.0.0.1:8765") as made:
        yield made


def test_a_webhook_is_a_hint(client, campaign, fake, tmp_path):
    for n, event in enumerate([fake.annotate(101, 5, "good"), fake.delete(1), {"action": "x"}], 1):
        reply = client.post(WEBHOOKS, json=event)
        assert (reply.status_code, reply.content) == (204, b"")
        with Campaign.open(tmp_path / "campaign.db") as other:  # another process sees it
            assert n_hints(other) == n
    assert campaign.labels.n_annotations == 0  # only the API brings answers


def forged(fake) -> list[dict]:
    """Return what an annotator who has read the secret can send."""
    fake.annotate(101, 5, "good")
    edited = fake.payload("ANNOTATION_UPDATED", fake.tasks[101]["annotations"][0])
    edited["annotation"].update(updated_at="2999-01-01T00:00:00Z")
    edited["annotation"]["result"][0]["value"]["choices"] = ["bad"]
    other = json.loads(json.dumps(edited))
    other["annotation"].update(id=999, completed_by=6)
    new = {"action": "TASKS_CREATED", "project": {"id": 7}, "tasks": [{"id": 555, "data": {}}]}
    gone = {"action": "ANNOTATIONS_DELETED", "project": {"id": 7}, "annotations": [{"id": 1}]}
    return [edited, other, new, gone, {"action": "TASKS_DELETED", "tasks": [{"id": 101}]}]


def test_a_forged_webhook_changes_no_answer_and_no_task(client, campaign, fake):
    mirror = AnnotationMirror(campaign, Link.of(campaign))
    bodies = forged(fake)
    mirror.take_snapshot(list(fake.tasks.values()), mirror.mark())
    before = campaign.labels.to_dict()
    for body in bodies:
        assert client.post(WEBHOOKS, json=body).status_code == 204
    mirror.take_snapshot(list(fake.tasks.values()), mirror.mark())
    after = campaign.labels.to_dict()
    assert {name: after[name].tolist() for name in after} == {
        name: before[name].tolist() for name in before
    }
    assert after["label"].tolist() == ["good"]
    assert campaign.labels.tasks.tolist() == ["101", "102"]


def test_webhooks_have_a_secret_of_their_own(campaign, fake, monkeypatch):
    from starlette.testclient import TestClient

    monkeypatch.setattr("wisecrowd.acquire.service_guard.WRONG_SECONDS", 0.0)
    event, own = fake.annotate(101, 5, "good"), webhook_secret(SECRET)
    assert SECRET not in own
    wrong = [{}, {WEBHOOK_HEADER: SECRET}, {WEBHOOK_HEADER: ""}, {WEBHOOK_HEADER: own + "0"},
             {"Authorization": f"Bearer {own}"}, {"Authorization": f"Bearer {SECRET}"}]  # fmt: skip
    with TestClient(make_app(campaign, SECRET)) as client:
        for headers in wrong:
            assert client.post(WEBHOOKS, json=event, headers=headers).status_code == 401
        assert n_hints(campaign) == 0
        assert client.post(WEBHOOKS, json=event, headers={WEBHOOK_HEADER: own}).status_code == 204
        # Annotators can read it in Label Studio; it opens nothing else.
        for headers in ({WEBHOOK_HEADER: own}, {"Authorization": f"Bearer {own}"}):
            assert client.get("/next?worker=a", headers=headers).status_code == 401
            assert client.post("/answers", json=[], headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [(b"not json", "application/json", 204), (b"[" * 200, "application/json", 204),
     (b"{}", "text/plain", 415), (b" " * (MOST_BYTES + 1), "application/json", 413)],
)  # fmt: skip
def test_bodies_are_not_read(client, campaign, content, kind, status):
    reply = client.post(WEBHOOKS, content=content, headers={"content-type": kind})
    assert reply.status_code == status
    assert campaign.labels.n_annotations == 0


def test_a_campaign_without_a_project():
    from starlette.testclient import TestClient

    with Campaign(["101"]) as campaign:
        with TestClient(make_app(campaign), base_url="http://127.0.0.1:8765") as client:
            reply = client.post(WEBHOOKS, json={})
        assert reply.status_code == 409
        assert "label-studio watch" in reply.json()["error"]


def test_a_full_disk_is_507(client, monkeypatch):
    def full(*given):
        raise CampaignError("full")

    monkeypatch.setattr("wisecrowd.acquire.service.leave_hint", full)
    assert client.post(WEBHOOKS, json={}).status_code == 507
