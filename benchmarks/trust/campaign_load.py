"""The service of a campaign: 50 clients with 10 000 answers on a real disk, and what it refuses."""

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


SECRET = "a secret of the benchmark"
HOSTILE = "<script>alert(9)</script>"


def run() -> list[Row]:
    # Beside the repository, because the usual temporary folder may be in memory.
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        return [*load(Path(scratch) / "load"), *security(Path(scratch) / "security")]


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


def security(folder: Path) -> list[Row]:
    """Send what must be refused to a real service; nothing may be stored or echoed."""
    right = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    wrong = {**right, "Authorization": "Bearer guess"}
    answer = json.dumps({"task": 1, "worker": "a", "label": 0})
    cases = [
        ("wrong secret", "POST", "/answers", answer, wrong, 401),
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
    seconds: list[float] = []
    errors: list[str] = []

    def deliver(name: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for task in range(EACH):
            body = json.dumps({"task": task, "worker": name, "label": task % 2,
                               "id": f"{name} {task}"})  # fmt: skip
            start = time.perf_counter()
            connection.request("POST", "/answers", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            content = json.loads(reply.read())
            seconds.append(time.perf_counter() - start)
            if reply.status != 200 or content != {"received": 1, "new": 1}:
                errors.append(str(content))

    threads = [threading.Thread(target=deliver, args=(f"w{n}",)) for n in range(CLIENTS)]
    begin = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return np.array(seconds), len(errors), time.perf_counter() - begin


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
