"""The service of a campaign under load: 50 clients on loopback, 10 000 answers, on a real disk."""

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
from pathlib import Path

import numpy as np

from benchmarks.rows import Row
from wisecrowd.acquire.campaign import Campaign

CLIENTS, EACH = 50, 200


def run() -> list[Row]:
    # Beside the repository, because the usual temporary folder may be in memory.
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        folder = Path(scratch) / "campaign"
        folder.mkdir()
        Campaign(range(EACH), path=folder / "campaign.db").close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "wisecrowd", "loop", str(folder), "--listen",
                   f"127.0.0.1:{port}", "-q"]  # fmt: skip
        server = subprocess.Popen(command, env={**os.environ})
        try:
            _wait(port)
            seconds, errors, whole = _load(port)
        finally:
            server.terminate()
            server.wait()
        with Campaign.open(folder / "campaign.db") as campaign:
            stored = campaign.labels.n_annotations
    late = float(np.quantile(seconds, 0.99)) * 1000
    what = f"{CLIENTS} clients deliver {CLIENTS * EACH} answers to one service"
    measured = (
        f"{errors} errors, {stored} stored; p50 {np.median(seconds) * 1000:.0f} ms, p99 "
        f"{late:.0f} ms, {CLIENTS * EACH / whole:.0f}/s; synchronous=FULL, {os.cpu_count()} cores, "
        "clients on the same machine"
    )
    met = not errors and stored == CLIENTS * EACH and late <= 150
    return [Row(what, "0 errors, p99 ≤ 150 ms", measured, met)]


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
