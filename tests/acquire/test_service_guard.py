"""Requests that pages of other sites make browsers send, and secrets that are guessed."""

from __future__ import annotations

import asyncio
import time

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.service import WEBHOOKS, make_app
from wisecrowd.acquire.service_guard import MOST_WAITING, RefusedError, SecretCheck, hosts_of

# Which client library starlette prefers does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
HOME = "http://127.0.0.1:8765"
SECRET = "a long enough secret"
PATHS = ("/", "/health", "/openapi.json", "/status", "/next?worker=a", "/nothing")


@pytest.fixture
def campaign():
    with Campaign(["t1", "t2"]) as made:
        yield made


@pytest.fixture
def client(campaign):
    from starlette.testclient import TestClient

    with TestClient(make_app(campaign), base_url=HOME) as made:
        yield made


def post(client, path="/answers", **headers):
    body = {"task": "t1", "worker": "a", "label": "x"}
    return client.post(
        path, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:8766", "localhost", "",
             "localhost.evil.example:8765", "127.0.0.1:8765.evil.example", "0.0.0.0:8765",
             "[::]:8765", "127.0.0.1:8765,evil.example"]
)  # fmt: skip
def test_a_foreign_host_is_refused(client, campaign, host):
    for path in PATHS:
        reply = client.get(path, headers={"Host": host})
        assert reply.status_code == 421
        assert "127.0.0.1:8765" in reply.json()["error"]
        assert "evil" not in reply.text
    assert post(client, Host=host).status_code == 421
    assert campaign.n_answers == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST:8765", "[::1]:8765"]
)
def test_own_hosts_are_answered(client, host):
    assert client.get("/status", headers={"Host": host}).status_code == 200
    assert post(client, Host=host, Origin=f"http://{host}").status_code == 200


def test_hosts_of_an_address():
    assert "127.0.0.2:80" in hosts_of("127.0.0.2", 80)
    assert "127.0.0.2" in hosts_of("127.0.0.2", 80)
    assert "[::1]:9" in hosts_of("::1", 9)


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"},
     {"Origin": "http://[::1"}, {"Origin": "file://127.0.0.1:8765"},
     {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
     {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate"}],
)  # fmt: skip
def test_requests_of_other_sites_are_refused(client, campaign, headers):
    for path in PATHS:
        assert client.get(path, headers=headers).status_code == 403
    for path in ("/answers", "/next", WEBHOOKS):
        assert post(client, path, **headers).status_code == 403
    assert (campaign.n_answers, campaign.open_queries()) == (0, [])


def test_a_link_to_the_page_works_and_the_page_may_ask(client):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/status", headers=link).status_code == 403
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty"}
    assert client.get("/status", headers=own).status_code == 200
    assert client.get("/status", headers={"Sec-Fetch-Site": "none"}).status_code == 200


def test_a_service_with_a_secret_may_have_any_name(campaign):
    from starlette.testclient import TestClient

    right = {"Authorization": f"Bearer {SECRET}", "Host": "campaign.example.org"}
    with TestClient(make_app(campaign, SECRET)) as client:
        assert client.get("/status", headers=right).status_code == 200
        own = right | {"Origin": "https://campaign.example.org"}
        assert client.get("/status", headers=own).status_code == 200
        for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert client.get("/status", headers=right | foreign).status_code == 403


def test_every_reply_has_the_headers(client):
    replies = [client.get(path) for path in PATHS]
    replies += [client.get("/", headers={"Host": "evil.example"}), client.get("/answers"),
                post(client), post(client, "/next", Origin="null"),
                client.post("/answers", content=b"x")]  # fmt: skip
    assert {reply.status_code for reply in replies} == {200, 403, 404, 405, 415, 421}
    for reply in replies:
        assert reply.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert reply.headers.get_list("cache-control") == ["no-store"]


def test_the_right_secret_never_waits_for_wrong_ones(monkeypatch):
    monkeypatch.setattr("wisecrowd.acquire.service_guard.WRONG_SECONDS", 0.5)

    async def guess(check, given):
        start = time.monotonic()
        try:
            await check.require(given, SECRET, "it so")
        except RefusedError as refused:
            return refused.status, time.monotonic() - start
        return 200, time.monotonic() - start

    async def attack():
        check = SecretCheck()
        wrong = [asyncio.create_task(guess(check, f"guess {n}")) for n in range(3 * MOST_WAITING)]
        await asyncio.sleep(0)
        right = [await guess(check, SECRET) for _ in range(20)]
        return right, await asyncio.gather(*wrong)

    right, wrong = asyncio.run(attack())
    assert [status for status, _ in right] == [200] * 20
    assert max(seconds for _, seconds in right) < 0.4
    assert [status for status, _ in wrong].count(401) == MOST_WAITING
    assert min(seconds for status, seconds in wrong if status == 401) >= 0.4
    assert {status for status, _ in wrong} == {401, 429}


def test_a_secret_that_is_not_ascii():
    async def check(given: str) -> None:
        await SecretCheck().require(given, "schlüssel", "it so")

    asyncio.run(check("schlüssel".encode().decode("latin-1")))  # as headers are decoded
