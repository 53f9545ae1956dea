from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.service import OPENAPI, make_app
from wisecrowd.acquire.service_guard import (
    DEEPEST,
    MOST_BYTES,
    MOST_CLIENTS,
    RateLimit,
    check_address,
)
from wisecrowd.core.exceptions import ParameterError

# Which client library starlette prefers does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
SECRET = "a long enough secret"
HOME = "http://127.0.0.1:8765"


@pytest.fixture
def campaign(tmp_path):
    with Campaign(["t1", "t2", "t3"], classes=["x", "y"], path=tmp_path / "campaign.db") as made:
        yield made


@pytest.fixture
def client(campaign):
    from starlette.testclient import TestClient

    with TestClient(make_app(campaign), base_url=HOME) as made:
        yield made


@pytest.fixture
def guarded(campaign, monkeypatch):
    from starlette.testclient import TestClient

    monkeypatch.setattr("wisecrowd.acquire.service_guard.WRONG_SECONDS", 0.0)
    with TestClient(make_app(campaign, SECRET)) as made:
        yield made


def test_ask_and_answer(client, campaign):
    first = client.post("/next", json={"worker": "ann"}).json()["queries"]
    again = client.post("/next", json={"worker": "ann"}).json()["queries"]
    assert first == again  # the open query is repeated, not doubled
    assert set(first[0]) == {"id", "task"}  # nothing tells which question is gold
    answer = {"task": first[0]["task"], "worker": "ann", "label": "x", "id": "a1"}
    assert client.post("/answers", json=answer).json() == {"received": 1, "new": 1}
    assert client.post("/answers", json=answer).json() == {"received": 1, "new": 0}
    rest = [{"task": t, "worker": "ann", "label": "y", "id": t} for t in ("t1", "t2", "t3")]
    assert client.post("/answers", json=rest).status_code == 200
    for done in (client.post("/next", json={"worker": "ann", "n": 5}).json(),
                 client.get("/next", params={"worker": "ann", "n": 5}).json()):  # fmt: skip
        assert done == {"queries": [], "stop": "nothing left"}
    assert campaign.labels.n_annotations == 3
    status = client.get("/status").json()
    worker = {"worker": "ann", "labels": 3, "agreement": None, "poor": False}
    assert (status["labels"], status["workers"]) == (3, [worker])


def test_secret(guarded):
    wrong = ("Bearer wrong", SECRET + "x", SECRET, f"Basic {SECRET}", f"Bearer{SECRET}")
    for headers in ({}, *({"Authorization": one} for one in wrong)):
        for call in (
            guarded.post("/next", json={"worker": "ann"}, headers=headers),
            guarded.get("/next", params={"worker": "ann"}, headers=headers),
            guarded.get("/status", headers=headers),
            guarded.post("/answers", json={}, headers=headers),
        ):
            assert call.status_code == 401
            assert "send the header Authorization: Bearer SECRET" in call.json()["error"]
            assert call.headers["www-authenticate"] == "Bearer"
    for right in (f"Bearer {SECRET}", f"bearer {SECRET}"):
        found = guarded.get("/next?worker=ann", headers={"Authorization": right})
        assert found.status_code == 200
    assert guarded.get("/health").json()["status"] == "ok"
    assert SECRET not in guarded.get("/").text


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"not json", {}, 400),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b'{"task": ["t1"], "worker": "a", "label": "x"}', {}, 400),
        (b'{"task": "t1", "worker": "a"}', {}, 400),
        (b'{"task": "<script>9</script>", "worker": "a", "label": "x"}', {}, 422),
        (b'{"task": "t1", "worker": "a", "label": "<script>9</script>"}', {}, 422),
        (b'{"task": "t1", "worker": "", "label": "x"}', {}, 422),
        (b" " * (MOST_BYTES + 1), {}, 413),
        (b'{"task": "t1", "worker": NaN, "label": "x"}', {}, 400),
        (b'{"task": "t1", "worker": -Infinity, "label": "x"}', {}, 400),
        (b'{"task": "t1", "worker": 1e999, "label": "x"}', {}, 422),
        (b'{"task": "t1", "worker": "a", "label": "x", "id": 1e999}', {}, 422),
        (b'{"task": 1e999, "worker": "a", "label": "x"}', {}, 422),
        (b'{"task": "t1", "worker": 1e308, "label": "x"}', {}, 422),
        (b'{"task": "t1", "worker": %s, "label": "x"}' % (b"1" * 5000), {}, 400),
        (b'{"task": "t1", "worker": "%s", "label": "x"}' % (b"a" * 20_000), {}, 422),
        (b'{"task": "t1", "worker": "a", "label": "x", "id": "%s"}' % (b"a" * 20_000), {}, 422),
        (b'{"task": "t1", "worker": "%s", "label": "x"}' % (b"a" * 5_000_000), {}, 413),
        (b'{"task": "t1", "worker": "a\\ud800", "label": "x"}', {}, 422),
        (b'{"task": "t1", "worker": "\xff", "label": "x"}', {}, 400),
        (b"[" + b'\\"' * 200_000, {}, 413),
        (b"[" + b"{}," * 500_000 + b"{}]", {}, 413),
        (b"[" + b"[]," * 500_000 + b"[]]", {}, 413),
    ],
)
def test_bad_bodies_change_nothing_and_are_not_echoed(client, campaign, content, headers, status):
    given = {"content-type": "application/json", **headers}
    reply = client.post("/answers", content=content, headers=given)
    assert reply.status_code == status
    assert "<script>" not in reply.text
    assert campaign.labels.n_annotations == 0


@pytest.mark.parametrize(
    "query", ["", "?worker=", "?worker=a&n=0", "?worker=a&n=x", "?worker=a&n=101", "?worker=a&n=-1",
              "?worker=a&n=" + "9" * 5000, "?worker=a&n=%D9%A3", "?worker=" + "a" * 20_000]
)  # fmt: skip
def test_bad_queries(client, query):
    assert client.get("/next" + query).status_code == 400


@pytest.mark.parametrize(
    "body", [[], "a", {}, {"worker": ""}, {"worker": None}, {"worker": ["a"]},
             *({"worker": "a", "n": n} for n in (0, 101, -1, "1", 1.0, True, None, 10**30))]
)  # fmt: skip
def test_bad_requests_for_queries(client, campaign, body):
    assert client.post("/next", json=body).status_code == 400
    assert campaign.open_queries() == []


def test_showing_leases_nothing_and_nobody_joins(client, campaign):
    shown = client.get("/next", params={"worker": "ann", "n": 2}).json()
    assert [one["id"] for one in shown["queries"]] == [None, None]
    assert (campaign.open_queries(), len(campaign.labels.workers)) == ([], 0)
    leased = client.post("/next", json={"worker": "ann"}).json()["queries"]
    again = client.get("/next", params={"worker": "ann"}).json()["queries"]
    assert leased == again


def test_an_id_of_another_type_is_refused(client, campaign):
    """A number among texts would make the labels of the campaign unusable for good."""
    rows = [{"task": "t1", "worker": worker, "label": "x"} for worker in ("a", 5, True, 1.5)]
    codes = [client.post("/answers", json=row).status_code for row in rows]
    assert codes == [200, 422, 422, 422]
    assert client.post("/next", json={"worker": 5}).status_code == 422
    assert campaign.labels.workers.tolist() == ["a"]
    assert client.get("/status").status_code == 200


def test_many_answers_at_once(client, campaign):
    """Parsed in pieces, they are what one piece would have been."""
    rows = [{"task": f"t{1 + i % 3}", "worker": f'w[{i}]"\\,{{', "label": "x"} for i in range(3000)]
    body = json.dumps(rows, indent=3)
    assert len(body) > 200_000
    kind = {"content-type": "application/json"}
    reply = client.post("/answers", content=body, headers=kind).json()
    assert reply == {"received": 3000, "new": 3000}
    assert set(campaign.labels.workers) == {row["worker"] for row in rows}
    for wrong in (body[:-1], body + "]", body[:-1] + ",]", body.replace("},", "},,", 1), body[1:]):
        assert client.post("/answers", content=wrong, headers=kind).status_code in (400, 413)


def test_one_bad_answer_stores_none(client, campaign):
    rows = [
        {"task": "t1", "worker": "a", "label": "x"},
        {"task": "t9", "worker": "a", "label": "x"},
    ]
    assert client.post("/answers", json=rows).status_code == 422
    assert campaign.labels.n_annotations == 0


def test_full_disk_is_507(client, campaign, monkeypatch):
    def full(answers):
        raise CampaignError("full")

    monkeypatch.setattr(campaign, "tell_groups", full)
    reply = client.post("/answers", json={"task": "t1", "worker": "a", "label": "x"})
    assert reply.status_code == 507


def test_page_is_inert_and_paths_lead_nowhere(client):
    page = client.get("/")
    assert "innerHTML" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "script-src" in page.headers["content-security-policy"]
    assert "http" not in page.text.replace("http://www.w3.org/2000/svg", "")  # works offline
    for path in ("/../pyproject.toml", "/%2e%2e/etc/passwd", "/static/x", "/campaign.db"):
        assert client.get(path).status_code == 404
    assert client.get("/answers").status_code == 405


def test_description(client):
    assert client.get("/openapi.json").json() == json.loads(json.dumps(OPENAPI))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::"])
def test_other_addresses_need_a_secret(host):
    with pytest.raises(ParameterError, match="--secret"):
        check_address(host, None)
    assert not check_address(host, SECRET)
    assert check_address("::1", None)


def test_brackets_in_texts_are_not_nesting(client, campaign):
    rows = [{"task": "t1", "worker": "[" * 300 + '"[' * n, "label": "x"} for n in range(3)]
    assert client.post("/answers", json=rows).json()["new"] == 3


def test_too_many_requests(campaign):
    from starlette.testclient import TestClient

    limit = RateLimit(rate=0.001, burst=3.0)
    with TestClient(make_app(campaign, limit=limit), base_url=HOME) as client:
        codes = [client.get("/next", params={"worker": "a"}).status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]


def test_the_limit_forgets_old_clients():
    limit = RateLimit(rate=1.0, burst=1.0)
    for number in range(MOST_CLIENTS + 10):
        assert limit.allows(str(number), 0.0)
    assert not limit.allows(str(MOST_CLIENTS + 9), 0.0)
    assert len(limit._left) <= MOST_CLIENTS


def test_names_are_not_addresses():
    with pytest.raises(ParameterError, match="numeric address"):
        check_address("example.org", SECRET)
