from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import wisecrowd

pytest.importorskip("uvicorn")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "nonsense"], "give address and port"),
        (["--listen", "127.0.0.1:\u0668\u0667\u0666\u0665"], "give address and port"),
        (["--listen", "127.0.0.1:\u00b2"], "give address and port"),
        (["--listen", "127.0.0.1:" + "9" * 5000], "give address and port"),
        (["--listen", "0.0.0.0:8765"], "can be reached by others"),
        (["--secret", "plain text"], "env:NAME"),
        (["--secret", "env:NOT_SET_AT_ALL"], "env:NAME"),
        ([], "start one with --tasks"),
    ],
)
def test_wrong_options(cli, tmp_path, options, words):
    done = cli("loop", tmp_path / "campaign", *options)
    assert done.code == 2
    assert words in done.err
    assert "plain text" not in done.err


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_service_is_killed_and_continued(table, tmp_path):
    tasks = table("tasks.csv", ["task"], [["t1"], ["t2"], ["t3"]])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "wisecrowd", "loop", str(tmp_path / "campaign"),
               "--tasks", str(tasks), "--listen", f"127.0.0.1:{port}"]  # fmt: skip
    source = str(Path(wisecrowd.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}

    def call(path: str, body: object = None) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        for _ in range(1200):
            try:
                with urllib.request.urlopen(request, timeout=10) as reply:
                    return json.load(reply)
            except (ConnectionError, urllib.error.URLError):
                time.sleep(0.05)
        raise TimeoutError

    first = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        (query,) = call("/next", {"worker": "ann"})["queries"]
        answer = {"task": query["task"], "worker": "ann", "label": "x", "id": 1}
        assert call("/answers", answer) == {"received": 1, "new": 1}
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    second = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert call("/answers", answer) == {"received": 1, "new": 0}  # it was stored
        assert call("/status")["labels"] == 1
        for host in ("evil.example", f"evil.example:{port}"):  # a name that leads to loopback
            foreign = urllib.request.Request(
                f"http://127.0.0.1:{port}/status", headers={"Host": host}
            )
            with pytest.raises(urllib.error.HTTPError, match="421"):
                urllib.request.urlopen(foreign, timeout=10)
    finally:
        second.send_signal(signal.SIGINT)
        err = second.communicate(timeout=30)[1]
    assert second.returncode in (0, 130)
    assert "Traceback" not in err


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_folder_without_a_service(cli, table, tmp_path):
    folder = tmp_path / "campaign"
    tasks = table("tasks.csv", ["task"], [["t1"], ["t2"], ["t3"]])
    (folder / "inbox").mkdir(parents=True)
    (folder / "inbox" / "a.csv").write_text("task,worker,label\nt1,ann,x\nt2,bob,y\n")
    command = [sys.executable, "-m", "wisecrowd", "loop", str(folder), "--tasks", str(tasks)]
    environment = {**os.environ, "PYTHONPATH": str(Path(wisecrowd.__file__).parents[1])}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            if (folder / "done" / "a.csv").exists():
                break
            time.sleep(0.05)
        second = cli("loop", folder)
        assert second.code == 3
        assert f"process {process.pid}" in second.err
    finally:
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=30)[1]
    assert process.returncode == 0
    assert "took inbox file 'a.csv': 2 answers, 2 new" in err
    assert "nothing is lost" in err
    assert (folder / "outbox" / "next.csv").read_text().startswith("task,worker,score,reason")
