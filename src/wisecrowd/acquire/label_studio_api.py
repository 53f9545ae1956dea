"""A client of Label Studio's HTTP API: projects, tasks, predictions and webhooks.

It uses the standard library only. Label Studio's own SDK would bring pandas, lxml, nltk and OpenCV,
and the dozen requests below are plain JSON.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

from wisecrowd.core.exceptions import ParameterError, WisecrowdError

TIMEOUT = 120.0  # seconds of one request; a bulk of predictions takes ten
ATTEMPTS = 6  # of a request that fails on the way
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds between attempts, doubled each time
ACCESS_SECONDS = 240.0  # an access token lives 300 seconds
PAGE = 100  # tasks of one request
MOST_BYTES = 200_000_000  # of one reply
# What is read of projects, tasks and annotations; all of it would take three times as long.
PROJECT_FIELDS = (
    "id", "parsed_label_config", "task_number", "model_version", "sampling",
    "maximum_annotations", "show_overlap_first", "show_collab_predictions",
)  # fmt: skip
TASK_FIELDS = (
    "id", "data", "annotations", "overlap", "is_labeled", "total_annotations",
    "cancelled_annotations", "updated_at", "created_at", "result", "completed_by", "was_cancelled",
)  # fmt: skip
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BUSY = (429, 502, 503, 504)


class LabelStudioError(WisecrowdError):
    """Label Studio cannot be reached, or has refused a request."""


class UnreachableError(LabelStudioError):
    """Label Studio did not answer, or failed; the same request may succeed later."""


class NotThereError(LabelStudioError):
    """Label Studio has no such project or task, or does not show it to this user."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are errors, because the token would be sent to another address."""

    def redirect_request(self, *given: Any, **more: Any) -> None:
        """Return no request."""


class LabelStudioClient:
    """Requests to one server.

    Parameters
    ----------
    url : str
        Address of the server, as ``http://127.0.0.1:8080``.
    token : str
        A legacy token (40 hexadecimal digits) or a personal access token (three parts with dots).
    attempts : int
        How often a request is sent that fails on the way.
    """

    def __init__(self, url: str, token: str, *, attempts: int = ATTEMPTS) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ParameterError(
                f"{url!r} is not the address of a server; give one as http://127.0.0.1:8080."
            )
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ParameterError(
                "The token is empty or has characters that no token has; copy it from Account & "
                "Settings in Label Studio."
            )
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.is_private = parts.scheme == "https" or parts.hostname in LOOPBACK
        self._token, self._attempts = token, attempts
        self._access, self._access_ends = "", 0.0
        direct = [urllib.request.ProxyHandler({})] if parts.hostname in LOOPBACK else []
        self._opener = urllib.request.build_opener(_NoRedirect, *direct)

    # ------------------------------------------------------------------------------- requests

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the content of a reply; an error of the server is an exception.

        A request that did not arrive is repeated. One that may have arrived is repeated too unless
        it is a POST, which is not idempotent.
        """
        for attempt in range(self._attempts):
            last = attempt + 1 == self._attempts
            try:
                status, content = self._send(method, path, body, self._authorization())
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                if last or not (method != "POST" or isinstance(reason, ConnectionRefusedError)):
                    raise UnreachableError(
                        f"No Label Studio answers at {self.url} ({_plain(reason)}); start it, or "
                        "correct the address."
                    ) from None
            else:
                if status == 401 and self._access and not last:
                    self._access = ""  # it has expired, perhaps while the machine slept
                    continue
                if status not in _BUSY or last or method == "POST":
                    return self._checked(status, content, method, path)
            time.sleep(min(FIRST_WAIT * 2**attempt, LONGEST_WAIT))
        raise AssertionError("the last attempt returns or raises")

    def _send(self, method: str, path: str, body: Any, authorization: str) -> tuple[int, bytes]:
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Accept": "application/json", "Content-Type": "application/json"},
            method=method,
        )
        if authorization:
            request.add_unredirected_header("Authorization", authorization)
        try:
            with self._opener.open(request, timeout=TIMEOUT) as reply:
                content = reply.read(MOST_BYTES + 1)
                if len(content) > MOST_BYTES:
                    raise LabelStudioError(
                        f"Label Studio's reply to {path} has more than {MOST_BYTES} bytes; "
                        "give the project smaller tasks."
                    )
                return reply.status, content
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(100_000)

    def _authorization(self) -> str:
        """Return the header's value; a personal token is exchanged for an access token."""
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        if not self._access or time.monotonic() >= self._access_ends:
            body = {"refresh": self._token}
            status, content = self._send("POST", "/api/token/refresh/", body, "")
            found = self._checked(status, content, "POST", "/api/token/refresh/")
            if not isinstance(found, dict) or not isinstance(found.get("access"), str):
                raise self._stranger()
            self._access, self._access_ends = found["access"], time.monotonic() + ACCESS_SECONDS
        return f"Bearer {self._access}"

    def _checked(self, status: int, content: bytes, method: str, path: str) -> Any:
        if status in (401, 403):
            raise LabelStudioError(
                f"{self.url} refuses the token ({_detail(content) or status}); copy the token of a "
                "user of the project, and allow legacy tokens if it is one."
            )
        if status == 404:
            raise NotThereError(
                f"{self.url} has no {path.partition('?')[0]}, or its user may not see it; correct "
                "the number of the project."
            )
        if 300 <= status < 400:
            raise LabelStudioError(
                f"{self.url} redirects {path.partition('?')[0]}; give the address to which it does."
            )
        if status >= 400:
            failed = UnreachableError if status >= 500 or status == 429 else LabelStudioError
            raise failed(
                f"Label Studio refused {method} {path.partition('?')[0]} with status {status} "
                f"({_detail(content) or 'without a reason'})."
            )
        if not content.strip():
            return None
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise self._stranger() from None

    def _stranger(self) -> LabelStudioError:
        return LabelStudioError(
            f"{self.url} does not answer as Label Studio does; correct the address."
        )

    def _object(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        found = self.call(method, path, body)
        if not isinstance(found, dict):
            raise self._stranger()
        return found

    # -------------------------------------------------------------------------- projects, tasks

    def version(self) -> str:
        """Return the version of the server."""
        return str(self._object("GET", "/api/version").get("release", "unknown"))

    def project(self, number: int) -> dict[str, Any]:
        """Return a project."""
        found = self._object("GET", f"/api/projects/{number}/?include={','.join(PROJECT_FIELDS)}")
        if "parsed_label_config" not in found:
            raise self._stranger()
        return found

    def change_project(self, number: int, **fields: Any) -> None:
        """Change fields of a project."""
        self.call("PATCH", f"/api/projects/{number}/", fields)

    def tasks(self, project: int, newest_first: bool = False) -> Iterator[list[dict[str, Any]]]:
        """Yield the tasks of a project with their annotations, page by page.

        Parameters
        ----------
        project : int
        newest_first : bool
            In the order of their last change; by default that of their numbers.
        """
        ordering = "-tasks:updated_at" if newest_first else "tasks:id"
        view = urllib.parse.quote(json.dumps({"ordering": [ordering]}))
        page, seen = 0, 0
        while True:
            page += 1
            found = self._object(
                "GET",
                f"/api/tasks/?project={project}&page={page}&page_size={PAGE}&fields=all"
                f"&include={','.join(TASK_FIELDS)}&query={view}",
            )
            tasks = found.get("tasks")
            if not isinstance(tasks, list) or not all(map(_is_complete, tasks)):
                raise self._stranger()
            seen += len(tasks)
            if tasks:
                yield tasks
            if len(tasks) < PAGE or seen >= int(found.get("total") or 0):
                return

    def has_task(self, task: int) -> bool:
        """Return whether there is a task."""
        try:
            self.call("GET", f"/api/tasks/{task}/")
        except NotThereError:
            return False
        return True

    def change_task(self, task: int, **fields: Any) -> None:
        """Change fields of a task."""
        self.call("PATCH", f"/api/tasks/{task}/", fields)

    # ---------------------------------------------------------------------------- predictions

    def add_predictions(self, project: int, rows: Sequence[dict[str, Any]]) -> None:
        """Add predictions to tasks that exist; an error if the server dropped any.

        Label Studio drops a row that it does not like, and replies with success all the same.
        """
        path = f"/api/projects/{project}/import/predictions"
        created = self._object("POST", path, list(rows)).get("created")
        if created != len(rows):
            raise LabelStudioError(
                f"Label Studio took {created} of {len(rows)} predictions for project {project}; "
                "check that its tasks were not deleted meanwhile."
            )

    def prediction_versions(self, project: int) -> list[str]:
        """Return the versions of which a project has predictions."""
        found = self.call("GET", f"/api/projects/{project}/model-versions/")
        return [str(name) for name in found] if isinstance(found, dict | list) else []

    def remove_predictions(self, project: int, version: str) -> None:
        """Remove the predictions of a version."""
        path = f"/api/projects/{project}/model-versions/"
        self.call("DELETE", path, {"model_version": version})

    # ------------------------------------------------------------------------------- webhooks

    def set_webhook(
        self, project: int, url: str, actions: Sequence[str], headers: dict[str, str]
    ) -> bool:
        """Make a webhook of a project, or correct the one with this address; tell if it is new."""
        wanted = {  # a webhook is a hint, and its payload would hold the project's own token
            "url": url, "project": project, "send_payload": False, "send_for_all_actions": False,
            "actions": list(actions), "headers": headers, "is_active": True,
        }  # fmt: skip
        found = self.call("GET", f"/api/webhooks/?project={project}")
        for hook in found if isinstance(found, list) else []:
            if isinstance(hook, dict) and hook.get("url") == url:
                # Always with actions: a PATCH without them empties the list.
                self.call("PATCH", f"/api/webhooks/{int(hook['id'])}/", wanted)
                return False
        self.call("POST", "/api/webhooks/", wanted)
        return True


def _is_complete(task: Any) -> bool:
    """Return whether a task has its annotations, and these what is read of them."""
    annotations = task.get("annotations") if isinstance(task, dict) else None
    return isinstance(annotations, list) and all(
        isinstance(one, dict) and {"id", "result", "completed_by"} <= one.keys()
        for one in annotations
    )


def _plain(reason: object) -> str:
    """Return why a connection failed, on one line."""
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return " ".join(str(text).split())[:200]


def _detail(content: bytes) -> str:
    """Return the reason in an error's body, on one line, or nothing."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    if isinstance(found, dict):
        found = found.get("validation_errors") or found.get("detail") or found
    return " ".join(str(found).split()).rstrip(".")[:200]
