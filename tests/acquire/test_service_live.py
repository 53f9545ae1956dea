"""The service over real connections: clients that are slow, leave, or send what takes long."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import closing
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.support.served_campaign import serving

from wisecrowd.acquire.campaign import Campaign

HEAD = (
    b"POST /answers HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n"
)


@pytest.fixture
def campaign():
    with Campaign(["t1", "t2"]) as made:
        yield made


@pytest.fixture
def place(campaign):
    with serving(campaign) as address:
        yield urlsplit(address).netloc


def call(place, method, path, body=None) -> tuple[int, dict]:
    with closing(http.client.HTTPConnection(place, timeout=30)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def begun(place, body: bytes) -> socket.socket:
    """Send the first bytes of a body of 100."""
    host, port = place.split(":")
    made = socket.create_connection((host, int(port)), timeout=30)
    made.sendall(HEAD % place.encode() + body)
    return made


def test_a_slow_body_is_ended(place, monkeypatch):
    monkeypatch.setattr("wisecrowd.acquire.service_guard.ARRIVING", 0.3)
    with begun(place, b'{"task"') as slow:
        reply = b""
        while part := slow.recv(10_000):  # until the service closes the connection
            reply += part
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"send it again" in reply
    assert call(place, "GET", "/health")[0] == 200


def test_a_client_that_leaves_is_no_error(place, campaign, caplog, capfd):
    for _ in range(3):
        begun(place, b'{"task"').close()
    time.sleep(0.3)
    assert call(place, "GET", "/health")[0] == 200
    printed = capfd.readouterr()
    assert "Traceback" not in caplog.text + printed.err + printed.out
    assert campaign.n_answers == 0


@pytest.mark.parametrize("unit", [b'\\"', b'"', b"[[],", b'{"a":"\\\\"},'])
def test_a_body_that_takes_long_to_scan_is_refused(place, campaign, unit):
    """With a scan that looks back, 400 kB of these take minutes."""
    status, reply = call(place, "POST", "/answers", b"[" + unit * (400_000 // len(unit)))
    assert status in (400, 413)
    assert set(reply) == {"error"}
    assert call(place, "GET", "/health")[0] == 200
    assert campaign.n_answers == 0


def test_answers_after_odd_ones(place, campaign):
    for odd in ("NaN", "Infinity", "-Infinity", "1e999", "1e308", "null", "[]", '""', "9" * 5000):
        for role in ("task", "worker", "label"):
            row = {"task": '"t1"', "worker": '"a"', "label": '"x"'} | {role: odd}
            body = ", ".join(f'"{name}": {value}' for name, value in row.items())
            if (role, odd) != ("label", "null"):  # which withdraws
                assert call(place, "POST", "/answers", f"{{{body}}}")[0] in (400, 422)
    for path in ("/status", "/next?worker=a"):
        assert call(place, "GET", path)[0] == 200
    good = json.dumps({"task": "t1", "worker": "a", "label": "x"})
    assert call(place, "POST", "/answers", good) == (200, {"received": 1, "new": 1})
