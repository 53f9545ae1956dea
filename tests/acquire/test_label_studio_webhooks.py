"""Webhooks of Label Studio at the service of a campaign."""

from __future__ import annotations

import pytest
from tests.support.fake_label_studio import FakeLabelStudio

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.label_studio_mirror import Link, webhook_secret
from wisecrowd.acquire.service import MOST_BYTES, WEBHOOK_HEADER, WEBHOOKS, make_app

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

    with TestClient(make_app(campaign)) as made:
        yield made


def test_an_answer_is_stored_when_the_reply_comes(client, campaign, fake, tmp_path):
    event = fake.annotate(101, 5, "good")
    reply = client.post(WEBHOOKS, json=event)
    assert (reply.status_code, reply.json()) == (200, {"new": 1, "withdrawn": 0, "refused": 0})
    with Campaign.open(tmp_path / "campaign.db") as other:  # from the disk
        assert other.labels.n_annotations == 1
    assert client.post(WEBHOOKS, json=event).json()["new"] == 0
    assert client.post(WEBHOOKS, json=fake.delete(1)).json()["withdrawn"] == 1
    assert campaign.labels.n_annotations == 0


@pytest.mark.parametrize(
    "body", [{}, [], {"action": "PROJECT_UPDATED", "project": {"id": 7}},
             {"action": "ANNOTATION_CREATED", "project": {"id": 8}}]
)  # fmt: skip
def test_the_rest_is_ignored(client, campaign, body):
    reply = client.post(WEBHOOKS, json=body)
    assert (reply.status_code, reply.content) == (204, b"")
    assert campaign.labels.n_annotations == 0


def test_webhooks_have_a_secret_of_their_own(campaign, fake):
    from starlette.testclient import TestClient

    event, own = fake.annotate(101, 5, "good"), webhook_secret(SECRET)
    assert SECRET not in own
    wrong = [{}, {WEBHOOK_HEADER: SECRET}, {WEBHOOK_HEADER: ""}, {WEBHOOK_HEADER: own + "0"},
             {"Authorization": f"Bearer {own}"}, {"Authorization": f"Bearer {SECRET}"}]  # fmt: skip
    with TestClient(make_app(campaign, SECRET)) as client:
        for headers in wrong:
            assert client.post(WEBHOOKS, json=event, headers=headers).status_code == 401
        assert campaign.labels.n_annotations == 0
        assert client.post(WEBHOOKS, json=event, headers={WEBHOOK_HEADER: own}).status_code == 200
        # Annotators can read it in Label Studio; it opens nothing else.
        for headers in ({WEBHOOK_HEADER: own}, {"Authorization": f"Bearer {own}"}):
            assert client.get("/next?worker=a", headers=headers).status_code == 401
            assert client.post("/answers", json=[], headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [(b"not json", "application/json", 400), (b"[" * 200, "application/json", 400),
     (b"{}", "text/plain", 415), (b" " * (MOST_BYTES + 1), "application/json", 413)],
)  # fmt: skip
def test_bad_bodies(client, campaign, content, kind, status):
    reply = client.post(WEBHOOKS, content=content, headers={"content-type": kind})
    assert reply.status_code == status
    assert campaign.labels.n_annotations == 0


def test_hostile_text_is_not_echoed(client, campaign, fake):
    event = fake.annotate(101, 5, "<script>9</script>")
    event["annotation"]["result"][0]["from_name"] = "<b>"
    for body in (event, fake.annotate(102, 6, "<script>9</script>")):
        assert "<" not in client.post(WEBHOOKS, json=body).text
    assert campaign.labels.n_annotations == 1  # a label may be any text


def test_a_campaign_without_a_project():
    from starlette.testclient import TestClient

    with Campaign(["101"]) as campaign, TestClient(make_app(campaign)) as client:
        reply = client.post(WEBHOOKS, json={})
        assert reply.status_code == 409
        assert "label-studio watch" in reply.json()["error"]


def test_a_full_disk_is_507_and_changes_nothing(client, campaign, fake, monkeypatch):
    def full(*given):
        raise CampaignError("full")

    event = fake.annotate(101, 5, "good")
    with monkeypatch.context() as patch:
        patch.setattr(campaign, "tell", full)
        assert client.post(WEBHOOKS, json=event).status_code == 507
    # Neither the answer nor the row of the annotation was kept, so the same event counts.
    assert client.post(WEBHOOKS, json=event).json()["new"] == 1
