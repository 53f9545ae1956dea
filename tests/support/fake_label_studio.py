"""A small Label Studio: the endpoints that wisecrowd calls, with the payloads of version 1.23.2.

It keeps projects in memory and serves tasks by the rules that the real server was seen to follow:
a lock per user, then the predictions of the current version by score, then the rest.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "a" * 40
PERSONAL = "head.body.signature"
START = datetime(2024, 11, 17, 5, 0, 0)  # past: a time to come counts as now


def choice(label: str, control: str = "mood") -> dict[str, Any]:
    return {"from_name": control, "to_name": "text", "type": "choices",
            "value": {"choices": [label]}}  # fmt: skip


class FakeLabelStudio:
    """One project, number 7."""

    def __init__(self, n_tasks: int = 6, controls: dict[str, str] | None = None) -> None:
        self.project: dict[str, Any] = {
            "id": 7, "title": "fake", "model_version": None, "sampling": "Sequential sampling",
            "maximum_annotations": 3, "show_overlap_first": False, "show_collab_predictions": True,
            "parsed_label_config": {
                name: {"type": kind} for name, kind in (controls or {"mood": "Choices"}).items()
            },
        }  # fmt: skip
        self.tasks: dict[int, dict[str, Any]] = {}
        self.predictions: list[dict[str, Any]] = []
        self.webhooks: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.failures: list[int | str] = []  # statuses, or "drop", for the next requests
        self.locks: dict[int, int] = {}
        self._clock = 0
        self._n_annotations = 0
        for number in range(101, 101 + n_tasks):
            self.add_task(number)

    def _now(self) -> str:
        self._clock += 1
        return (START + timedelta(seconds=self._clock)).isoformat() + "Z"

    # ---------------------------------------------------------------------- what people do

    def add_task(self, number: int) -> None:
        self.tasks[number] = {
            "id": number, "data": {"text": f"text {number}", "key": f"k{number}"},
            "annotations": [], "overlap": self.project["maximum_annotations"], "is_labeled": False,
            "updated_at": self._now(),
        }  # fmt: skip

    def annotate(self, task: int, user: int, label: str | None, **more: Any) -> dict[str, Any]:
        """Submit an annotation; a label of None skips the task. Return the webhook's payload."""
        self._n_annotations += 1
        now = self._now()
        made = {
            "id": self._n_annotations, "task": task, "project": 7, "completed_by": user,
            "result": [] if label is None else [choice(label)], "was_cancelled": label is None,
            "ground_truth": False, "created_at": now, "updated_at": now, **more,
        }  # fmt: skip
        self.tasks[task]["annotations"].append(made)
        self.locks.pop(user, None)
        self._touch(task)
        return self.payload("ANNOTATION_CREATED", made)

    def edit(self, number: int, label: str) -> dict[str, Any]:
        made = next(one for task in self.tasks.values() for one in task["annotations"]
                    if one["id"] == number)  # fmt: skip
        made.update(result=[choice(label)], was_cancelled=False, updated_at=self._now())
        self._touch(made["task"])
        return self.payload("ANNOTATION_UPDATED", made)

    def delete(self, number: int) -> dict[str, Any]:
        for task in self.tasks.values():
            kept = [one for one in task["annotations"] if one["id"] != number]
            if len(kept) < len(task["annotations"]):
                task["annotations"] = kept
                self._touch(task["id"])
        return {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": number}],
                "project": {"id": 7}}  # fmt: skip

    def delete_task(self, task: int) -> dict[str, Any]:
        del self.tasks[task]
        return {"action": "TASKS_DELETED", "tasks": [{"id": task}], "project": {"id": 7}}

    def payload(self, action: str, made: dict[str, Any]) -> dict[str, Any]:
        task = self.tasks[made["task"]]
        return json.loads(json.dumps({
            "action": action, "annotation": made, "project": {"id": 7, "token": "not ours"},
            "task": {"id": task["id"], "data": task["data"]},
        }))  # fmt: skip

    def _touch(self, task: int) -> None:
        one = self.tasks[task]
        one["updated_at"] = self._now()
        one["is_labeled"] = self.n_done(one) >= one["overlap"]

    @staticmethod
    def n_done(task: dict[str, Any]) -> int:
        return sum(not one["was_cancelled"] for one in task["annotations"])

    def has_annotated(self, user: int, task: int) -> bool:
        return any(one["completed_by"] == user for one in self.tasks[task]["annotations"])

    def next_task(self, user: int) -> int | None:
        """Return the task that a user is given."""
        if user in self.locks:
            return self.locks[user]
        version = self.project["model_version"]
        scores = {one["task"]: one["score"] for one in self.predictions
                  if one["model_version"] == version}  # fmt: skip
        held = list(self.locks.values())
        free = [
            number for number, task in self.tasks.items()
            if not task["is_labeled"] and self.n_done(task) + held.count(number) < task["overlap"]
            and not self.has_annotated(user, number)
        ]  # fmt: skip
        if not free:
            return None
        self.locks[user] = min(free, key=lambda number: (scores.get(number, 2.0), number))
        return self.locks[user]

    # --------------------------------------------------------------------------- endpoints

    def reply(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        """Return (status, content) of a request."""
        parts = [part for part in path.split("/") if part][1:]
        match (method, *parts):
            case ("GET", "version"):
                return 200, {"release": "1.23.2"}
            case ("POST", "token", "refresh"):
                return (200, {"access": "open"}) if body == {"refresh": PERSONAL} else (401, {})
            case (_, "projects", "7", *rest):
                return self._project(method, rest, body)
            case ("GET", "tasks"):
                return 200, self._page(query)
            case (_, "tasks", number) if int(number) in self.tasks:
                if method == "PATCH":
                    self.tasks[int(number)].update(body, updated_at=self._now())
                return 200, self.tasks[int(number)]
            case (_, "webhooks", *rest):
                return self._webhook(method, rest, body)
        return 404, {"detail": "Not found."}

    def _project(self, method: str, rest: list[str], body: Any) -> Any:
        if rest == ["import", "predictions"]:
            if any(row["task"] not in self.tasks for row in body):
                return 400, {"detail": "task ids"}
            good = [row for row in body if 0 <= row["score"] <= 1 and row["result"] == []]
            self.predictions += good
            return 201, {"created": len(good)}
        if rest == ["model-versions"]:
            if method == "DELETE":
                gone = body["model_version"]
                self.predictions = [p for p in self.predictions if p["model_version"] != gone]
                if self.project["model_version"] == gone:
                    self.project["model_version"] = None
            return 200, {one["model_version"]: 1 for one in self.predictions}
        if method == "PATCH":
            if (
                body.get("maximum_annotations", self.project["maximum_annotations"])
                != (self.project["maximum_annotations"])
            ):
                for task in self.tasks.values():
                    task["overlap"] = body["maximum_annotations"]
            known = {None, *(one["model_version"] for one in self.predictions)}
            if body.get("model_version") not in known:
                return 400, {"detail": "unknown version"}
            self.project.update(body)
        return 200, self.project | {"task_number": len(self.tasks)}

    def _page(self, query: dict[str, list[str]]) -> Any:
        ordering = json.loads(query["query"][0])["ordering"][0]
        tasks = sorted(self.tasks.values(), key=lambda task: task["id"])
        if ordering == "-tasks:updated_at":
            tasks.sort(key=lambda task: task["updated_at"], reverse=True)
        size, page = int(query["page_size"][0]), int(query["page"][0])
        shown = [
            task | {"total_annotations": self.n_done(task),
                    "cancelled_annotations": len(task["annotations"]) - self.n_done(task)}
            for task in tasks[size * (page - 1) : size * page]
        ]  # fmt: skip
        return {"total": len(tasks), "tasks": shown}

    def _webhook(self, method: str, rest: list[str], body: Any) -> Any:
        if method == "POST":
            self.webhooks.append({"id": len(self.webhooks) + 1, **body})
        elif method == "PATCH":
            self.webhooks[int(rest[0]) - 1].update({"actions": [], **body})
        return 200, self.webhooks


class _Handler(BaseHTTPRequestHandler):
    fake: FakeLabelStudio

    def log_message(self, *given: Any) -> None:
        """Print nothing."""

    def _handle(self) -> None:
        fake = self.fake
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        where = urlsplit(self.path)
        fake.requests.append((self.command, where.path))
        failure = fake.failures.pop(0) if fake.failures else None
        if failure == "drop":
            self.close_connection = True
            return
        allowed = (f"Token {TOKEN}", "Bearer open")
        if failure is not None:
            status, content = failure, {"detail": "not now"}
        elif self.headers.get("Authorization") not in allowed and "token" not in where.path:
            status, content = 401, {"detail": "Invalid token."}
        else:
            status, content = fake.reply(self.command, where.path, parse_qs(where.query), body)
        sent = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(sent)

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()


@contextmanager
def serving(fake: FakeLabelStudio) -> Iterator[str]:
    """Serve on a free port of loopback, and yield the address."""
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
