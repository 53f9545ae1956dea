"""The service of a campaign: 50 clients on a real disk, also under attack, and what it refuses.

All of it stays on loopback, and attackers send a bounded number of requests.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from benchmarks.rows import Row
from wisecrowd.acquire.campaign import Campaign

CLIENTS, EACH = 50, 200
ROUNDS = 10  # queries that each client takes and answers under attack
ATTACKERS, MOST_ATTACKS = 4, 150  # threads, and requests of each
IDLE_SECONDS = 3.0  # of the service alone, for comparison
HELD = 20  # connections with a body that never ends
JSON = {"Content-Type": "application/json"}

SECRET = "a secret of the benchmark"
HOSTILE = "<script>alert(9)</script>"


def run() -> list[Row]:
    # Beside the repository, because the usual temporary folder may be in memory.
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        return [
            *load(Path(scratch) / "load"), *attacked(Path(scratch) / "attacked"),
            *security(Path(scratch) / "security"),
        ]  # fmt: skip


def load(folder: Path) -> list[Row]:
    with served(folder) as port:
        seconds, errors, whole = _load(port)
    with Campaign.open(folder / "campaign.db") as campaign:
        stored = campaign.labels.n_annotations
    late = float(np.quantile(seconds, 0.99)) * 1000
    what = f"{CLIENTS} clients deliver {CLIENTS * EACH} answers to one service"
    measured = (
        f"{errors} errors, {stored} stored; p50 {np.median(seconds) * 1000:.0f} ms, p99 "
        f"{late:.0f} ms, {CLIENTS * EACH / whole:.0f}/s; synchronous=FULL, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.1f}, clients on the same machine"
    )
    met = not errors and stored == CLIENTS * EACH and late <= 150
    return [Row(what, "0 errors, p99 ≤ 150 ms", measured, met)]


def attacked(folder: Path) -> list[Row]:
    """Mix the attacks that once stopped the service with 50 honest clients."""
    with served(folder) as port:
        stop = threading.Event()
        passed: list[str] = []
        sent: list[str] = []
        attackers = [threading.Thread(target=_attack, args=(port, n, stop, sent, passed))
                     for n in range(ATTACKERS)]  # fmt: skip
        with _probing(port) as idle:
            time.sleep(IDLE_SECONDS)
        held = [_hold(port) for _ in range(HELD)]
        with _probing(port) as probed:
            for one in attackers:
                one.start()
            seconds, errors, whole = _honest(port)
            stop.set()
            for one in attackers:
                one.join()
        for one in held:
            one.close()
        shown = _call(port, "GET", "/status", None, {})[0]
    with Campaign.open(folder / "campaign.db") as campaign:
        stored = campaign.labels.n_annotations
        strangers = {str(one) for one in campaign.labels.workers} - {
            f"w{n}" for n in range(CLIENTS)
        }
    health = np.array(probed) * 1000
    n_right = CLIENTS * ROUNDS
    load = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    what = f"{CLIENTS} clients take and answer {n_right} queries, {len(sent)} attacks among them"
    measured = (
        f"{errors} errors, {stored} stored, {len(passed)} attacks passed, "
        f"{len(strangers)} strangers, status {shown}, opens afterwards; a request p50 "
        f"{np.median(seconds) * 1000:.0f} ms, p99 {np.quantile(seconds, 0.99) * 1000:.0f} ms, "
        f"{whole:.0f} s; {load}"
    )
    met = not errors and stored == n_right and not passed and not strangers and shown == 200
    below = float(np.mean(health < 100))
    figures = (
        f"{below:.1%} of {len(health)} below 100 ms: p50 {np.median(health):.0f}, p99 "
        f"{np.quantile(health, 0.99):.0f}, most {health.max():.0f} ms; idle before: p99 "
        f"{np.quantile(idle, 0.99) * 1000:.0f}, most {max(idle) * 1000:.0f} ms; the clients share "
        f"the {load}"
    )
    return [
        Row(what, "0 errors, no attack passes, the campaign opens", measured, met),
        Row("/health meanwhile, from another process", "p99 < 100 ms", figures,
            np.quantile(health, 0.99) < 100),
    ]  # fmt: skip


def _attacks(port: int) -> list[tuple[str, str, bytes | None, dict[str, str]]]:
    """Return method, path, body and headers of requests of which none may succeed."""
    answer = b'{"task": 1, "worker": "evil", "label": 0}'
    home = {"Host": f"127.0.0.1:{port}"}
    bodies = [
        b"[" + b'\\"' * 200_000, b"[" + b'"' * 400_000, b"[" + b"[]," * 3_000_000 + b"[]]",
        b"[" + b"1," * 2_000_000 + b"1]", b"[" * 1_000_000, b'{"a": "' + b"x" * 5_000_000 + b'"}',
        *(answer.replace(b'"evil"', odd) for odd in (b"NaN", b"Infinity", b"1e999", b"[]", b'""',
                                                     b"9" * 5000, b'"' + b"e" * 5_000_000 + b'"')),
        answer.replace(b"1", b"-Infinity", 1),
    ]  # fmt: skip
    foreign = [
        {"Host": "evil.example"}, {"Host": f"evil.example:{port}"},
        home | {"Origin": "http://evil.example"}, home | {"Sec-Fetch-Site": "cross-site"},
        home | {"Origin": "null"}, home | {"Sec-Fetch-Site": "same-site"},
    ]  # fmt: skip
    lease = b'{"worker": "evil", "n": 100}'
    return [
        *(("POST", "/answers", body, home | JSON) for body in bodies),
        *(("POST", "/answers", answer, one | JSON) for one in foreign),
        *(("POST", "/next", lease, one | JSON) for one in foreign),
        *(("GET", "/next?worker=evil&n=100", None, one) for one in foreign),
        *(("GET", "/status", None, one) for one in foreign),
        ("GET", "/next?worker=evil&n=" + "9" * 5000, None, home),
        ("POST", "/answers", answer, home | {"Content-Type": "text/plain"}),
    ]


def _attack(
    port: int, number: int, stop: threading.Event, sent: list[str], passed: list[str]
) -> None:
    """Send attacks one after another; note those that succeed."""
    cases = _attacks(port)
    for turn in range(MOST_ATTACKS):
        if stop.is_set():
            return
        method, path, body, headers = cases[(number * 11 + turn) % len(cases)]
        found, text = _call(port, method, path, body, headers)
        sent.append(path)
        if found < 400 or found >= 500:
            passed.append(f"{method} {path[:30]} {found} {text[:80]}")
        if turn % 5 == 0:
            _hold(port).close()  # leave in the middle of a body


def _hold(port: int) -> socket.socket:
    """Begin a body that never ends."""
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.sendall(b"POST /answers HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json"
                 b"\r\nContent-Length: 1000\r\n\r\n[" % port)  # fmt: skip
    return made


PROBE = """
import http.client, sys, time, threading
port, found, stop = int(sys.argv[1]), [], threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
print("ready", flush=True)
while not stop.wait(0.02):
    start = time.perf_counter()
    connection.request("GET", "/health")
    reply = connection.getresponse()
    reply.read()
    found.append(time.perf_counter() - start if reply.status == 200 else 1e9)
print(" ".join(map(str, found)))
"""


@contextmanager
def _probing(port: int):
    """Ask for the health of the service from a process of its own; yield the seconds it took."""
    seconds: list[float] = []
    command = [sys.executable, "-c", PROBE, str(port)]
    probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert probe.stdout is not None
    probe.stdout.readline()
    yield seconds
    seconds += map(float, probe.communicate(timeout=120)[0].split())


def _honest(port: int) -> tuple[np.ndarray, int, float]:
    """Let all clients take queries and answer them."""

    def work(name: str, send) -> None:
        for _ in range(ROUNDS):
            queries = send("/next", {"worker": name})["queries"]
            rows = [{"task": one["task"], "worker": name, "label": one["task"] % 2,
                     "id": f"{name} {one['task']}"} for one in queries]  # fmt: skip
            if send("/answers", rows) != {"received": 1, "new": 1}:
                raise ValueError("an answer was not stored")

    return _clients(port, work)


def _clients(port: int, work) -> tuple[np.ndarray, int, float]:
    """Run the work of all clients; return the seconds of each request, errors and all seconds."""
    seconds: list[float] = []
    errors: list[str] = []

    def run_one(name: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def send(path: str, content: object) -> dict:
            start = time.perf_counter()
            connection.request("POST", path, json.dumps(content), JSON)
            reply = connection.getresponse()
            found = json.loads(reply.read())
            seconds.append(time.perf_counter() - start)
            if reply.status != 200:
                raise ValueError(str(found))
            return found

        try:
            work(name, send)
        except (OSError, ValueError, http.client.HTTPException) as error:
            errors.append(str(error))

    threads = [threading.Thread(target=run_one, args=(f"w{n}",)) for n in range(CLIENTS)]
    begin = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return np.array(seconds), len(errors), time.perf_counter() - begin


def security(folder: Path) -> list[Row]:
    """Send what must be refused to a real service; nothing may be stored or echoed."""
    right = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    wrong = {**right, "Authorization": "Bearer guess"}
    answer = json.dumps({"task": 1, "worker": "a", "label": 0})
    cases = [
        ("wrong secret", "POST", "/answers", answer, wrong, 401),
        ("secret without Bearer", "GET", "/status", None, {"Authorization": SECRET}, 401),
        ("no secret", "GET", "/status", None, {}, 401),
        ("20 MB", "POST", "/answers", b" " * 20_000_000, right, 413),
        ("deep JSON", "POST", "/answers", b"[" * 100_000, right, 400),
        ("not JSON", "POST", "/answers", b"x", right, 400),
        ("other type", "POST", "/answers", answer, {**right, "Content-Type": "text/plain"}, 415),
        ("script as task", "POST", "/answers", answer.replace("1", json.dumps(HOSTILE), 1), right,
         422),
        ("path tricks", "GET", "/../../etc/passwd", None, right, 404),
        ("encoded path", "GET", "/%2e%2e%2fcampaign.db", None, right, 404),
        ("database", "GET", "/campaign.db", None, right, 404),
    ]  # fmt: skip
    missed = []
    environment = {"BENCHMARK_SECRET": SECRET}
    with served(folder, ["--secret", "env:BENCHMARK_SECRET"], environment) as port:
        for name, method, path, body, headers, status in cases:
            found, text = _call(port, method, path, body, headers)
            if found != status or HOSTILE in text or SECRET in text:
                missed.append(f"{name}: {found}")
        if _call(port, "GET", "/health", None, {})[0] != 200:
            missed.append("the service does not answer any more")
        page = _call(port, "GET", "/", None, {})[1]
        if SECRET in page or "innerHTML" in page:
            missed.append("page")
    with Campaign.open(folder / "campaign.db") as campaign:
        if campaign.n_answers:
            missed.append("something was stored")
    command = [sys.executable, "-m", "wisecrowd", "loop", str(folder), "--listen", "0.0.0.0:8799"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 2:
        missed.append("foreign address without secret")
    n = len(cases) + 4
    return [Row(f"security: {n} attempts against a real service", "all refused, nothing echoed",
                f"{n - len(missed)} refused{'; missed: ' + ', '.join(missed) if missed else ''}",
                not missed)]  # fmt: skip


def _call(port: int, method: str, path: str, body, headers: dict) -> tuple[int, str]:
    """Return the status and the text of a reply; 0 if the connection broke without one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    # A service that refuses before the end of the body closes while we send; its reply counts.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.request(method, path, body, headers)
    try:
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")
    except (ConnectionError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


@contextmanager
def served(folder: Path, options: list[str] | None = None, environment: dict | None = None):
    """Serve a campaign from a process of its own and yield the port."""
    folder.mkdir()
    Campaign(range(EACH), path=folder / "campaign.db").close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "wisecrowd", "loop", str(folder), "--listen",
               f"127.0.0.1:{port}", "-q", *(options or [])]  # fmt: skip
    server = subprocess.Popen(command, env={**os.environ, **(environment or {})})
    try:
        _wait(port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _wait(port: int) -> None:
    for _ in range(400):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("The service did not start.")


def _load(port: int) -> tuple[np.ndarray, int, float]:
    def deliver(name: str, send) -> None:
        for task in range(EACH):
            row = {"task": task, "worker": name, "label": task % 2, "id": f"{name} {task}"}
            if send("/answers", row) != {"received": 1, "new": 1}:
                raise ValueError("an answer was not stored")

    return _clients(port, deliver)


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
