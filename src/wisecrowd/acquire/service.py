"""A campaign over HTTP: who asks next, answers in, health, and a live page.

``GET /next?worker=`` leases a query or repeats the open one, ``POST /answers`` stores answers and
replies after the commit, and so does ``POST /webhooks/label-studio``. Nothing that was sent is
echoed. Starlette is imported when it is needed.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd._version import __version__
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.label_studio_mirror import AnnotationMirror, Link, webhook_secret
from wisecrowd.acquire.progress import Progress
from wisecrowd.core.exceptions import DataError, MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MOST_BYTES = 10_000_000  # of a body; an import of 10 000 tasks sends a quarter of this
DEEPEST = 100  # levels of nested JSON
MOST_ASKED = 100  # queries of one request
LONGEST_ID = 1000  # characters of a worker's id
RATE, BURST = 1000.0, 2000.0  # requests of one client per second, and at once
MOST_CLIENTS = 10_000  # clients that the limit of the rate remembers
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_OPENING, _CLOSING = (np.frombuffer(marks, dtype=np.uint8) for marks in (b"[{", b"]}"))
WEBHOOKS, WEBHOOK_HEADER = "/webhooks/label-studio", "X-Wisecrowd-Secret"
PAGE = Path(__file__).with_name("live_page.html")


class RefusedError(Exception):
    """A request that is answered with an error status and a fixed sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class RateLimit:
    """A limit on the requests of each client: a bucket of ``burst`` that ``rate`` refills.

    Examples
    --------
    >>> limit = RateLimit(rate=1.0, burst=2.0)
    >>> [limit.allows("a", now) for now in (0.0, 0.0, 0.0, 1.0, 1.0)]
    [True, True, False, True, False]
    """

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, client: str, now: float) -> bool:
        """Return whether a request at a time, in seconds, is within the limit, and count it."""
        left, before = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + max(now - before, 0.0) * self._rate)
        while len(self._left) >= MOST_CLIENTS:  # forget the client that was silent longest
            del self._left[next(iter(self._left))]
        self._left[client] = (left - 1 if left >= 1 else left), now
        return left >= 1


def check_address(host: str, secret: str | None) -> bool:
    """Return whether an address is loopback; another one without a secret is refused.

    Examples
    --------
    >>> check_address("127.0.0.1", None), check_address("0.0.0.0", "long secret")
    (True, False)
    """
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ParameterError(
            f"--listen names {host!r}; give a numeric address such as 127.0.0.1:8765."
        ) from None
    if not loopback and not secret:
        raise ParameterError(
            f"{host} can be reached by others; give --secret env:NAME, or listen on 127.0.0.1."
        )
    return loopback


def make_app(
    campaign: Campaign, secret: str | None = None, limit: RateLimit | None = None
) -> Starlette:
    """Return the service of a campaign as an ASGI application.

    Parameters
    ----------
    campaign : Campaign
    secret : str, optional
        Every request but the page and ``/health`` needs ``Authorization: Bearer SECRET``. Webhooks
        of Label Studio need the secret of ``webhook_secret`` in ``X-Wisecrowd-Secret``.
    limit : RateLimit, optional
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise MissingDependencyError(
            "The service needs starlette and uvicorn; install them with "
            "pip install 'wisecrowd[serve]'."
        ) from None
    service = CampaignService(campaign, secret, limit or RateLimit())
    return Starlette(routes=[
        Route("/", service.page), Route("/health", service.health),
        Route("/openapi.json", service.openapi), Route("/status", service.status),
        Route("/next", service.next_query), Route("/answers", service.answers, methods=["POST"]),
        Route(WEBHOOKS, service.label_studio, methods=["POST"]),
    ])  # fmt: skip


class CampaignService:
    """The endpoints. The campaign works in a thread, so that requests do not wait for a fit."""

    def __init__(self, campaign: Campaign, secret: str | None, limit: RateLimit) -> None:
        self._campaign, self._secret, self._limit = campaign, secret, limit
        self._mirror: AnnotationMirror | None = None
        self._progress = Progress(campaign)

    async def page(self, request: Request) -> Response:
        """Return the live page, which holds no data of its own."""
        from starlette.responses import HTMLResponse

        headers = {
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers=headers)

    async def health(self, request: Request) -> Response:
        """Return that the service answers."""
        return _reply(200, {"status": "ok", "version": __version__})

    async def openapi(self, request: Request) -> Response:
        """Return the description of the endpoints."""
        return _reply(200, OPENAPI)

    async def status(self, request: Request) -> Response:
        """Return progress, reasons and workers for the live page."""
        return await self._guarded(request, self._status)

    async def next_query(self, request: Request) -> Response:
        """Return the open queries of a worker, or new ones."""
        return await self._guarded(request, self._next)

    async def answers(self, request: Request) -> Response:
        """Store answers; the reply comes after the commit."""
        return await self._guarded(request, self._answers)

    async def label_studio(self, request: Request) -> Response:
        """Take in a webhook of Label Studio, which waits for a second and never tries again."""
        return await self._guarded(request, self._label_studio)

    async def _guarded(self, request: Request, work: Any) -> Response:
        """Check the secret and the body, run the work in a thread, and translate errors."""
        from starlette.concurrency import run_in_threadpool

        try:
            client = request.client.host if request.client else ""
            if not self._limit.allows(client, time.monotonic()):
                raise RefusedError(429, "Too many requests; wait a second.")
            self._authorise(request)
            body = await _body(request) if request.method == "POST" else None
            found = await run_in_threadpool(work, request, body)
            return _reply(204 if found is None else 200, found)
        except RefusedError as refused:
            return _reply(refused.status, {"error": refused.sentence})
        except CampaignError:
            return _reply(507, {"error": "The answer was not stored; send it again later."})
        except (DataError, ParameterError):
            return _reply(422, {"error": "A task, worker or label is not part of the campaign."})

    def _authorise(self, request: Request) -> None:
        if self._secret is None:
            return
        wanted = self._secret
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.url.path == WEBHOOKS:
            given, wanted = request.headers.get(WEBHOOK_HEADER, ""), webhook_secret(wanted)
        if not hmac.compare_digest(given.encode(), wanted.encode()):
            raise RefusedError(401, "The secret is missing or wrong.")

    def _next(self, request: Request, body: Any) -> dict[str, Any]:
        worker, n = request.query_params.get("worker", ""), request.query_params.get("n", "1")
        if not worker or len(worker) > LONGEST_ID:
            raise RefusedError(400, "Give the worker, as in /next?worker=ann.")
        if not n.isascii() or not n.isdigit() or not 1 <= int(n) <= MOST_ASKED:
            raise RefusedError(400, f"n is a whole number from 1 to {MOST_ASKED}.")
        queries = self._campaign.open_queries(worker)[: int(n)]
        if len(queries) < int(n):
            queries += self._campaign.ask(int(n) - len(queries), workers=[worker])
        # Neither score nor reason: workers must not see which question is gold.
        found = [{"id": one.id, "task": one.task} for one in queries]
        report = None if found else asdict(self._campaign.stop_report([worker]))
        return {"queries": found, "stop": None if report is None else report["reason"]}

    def _answers(self, request: Request, body: Any) -> dict[str, Any]:
        rows = body if isinstance(body, list) else [body]
        answers = []
        for row in rows:
            if not isinstance(row, dict) or not {"task", "worker", "label"} <= set(row):
                raise RefusedError(400, "An answer is an object with task, worker and label.")
            values = [row[name] for name in ("task", "worker", "label")]
            if any(isinstance(value, dict | list) for value in (*values, row.get("id"))):
                raise RefusedError(400, "Task, worker, label and id are texts or numbers.")
            answers.append((*values, None, row.get("id")))
        return {"received": len(answers), "new": self._campaign.tell_many(answers)}

    def _label_studio(self, request: Request, body: Any) -> dict[str, Any] | None:
        if self._mirror is None:
            link = Link.of(self._campaign)
            if link is None:
                raise RefusedError(409, "The campaign has no project; run label-studio watch.")
            self._mirror = AnnotationMirror(self._campaign, link)
        told = self._mirror.receive(body)
        return None if told is None else told._asdict()

    def _status(self, request: Request, body: Any) -> dict[str, Any]:
        return self._progress.now()


def _reply(status: int, content: Any) -> Response:
    from starlette.responses import JSONResponse, Response

    if content is None:
        return Response(status_code=status)
    return JSONResponse(content, status, headers={"X-Content-Type-Options": "nosniff"})


async def _body(request: Request) -> Any:
    """Return the JSON of a request within the limits of size and nesting."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(415, "Send JSON, with content type application/json.")
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise RefusedError(413, f"A body has at most {MOST_BYTES} bytes; send fewer answers.")
    if _depth(content) > DEEPEST:
        raise RefusedError(400, "The JSON is nested too deeply.")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise RefusedError(400, "The body is not JSON.") from None


def _depth(content: bytes | bytearray) -> int:
    r"""Return the nesting of JSON without parsing it.

    Examples
    --------
    >>> _depth(b'[{"a": "[[["}, []]')
    2
    """
    plain = np.frombuffer(_STRING.sub(b"", bytes(content)), dtype=np.uint8)
    opening, closing = np.isin(plain, _OPENING), np.isin(plain, _CLOSING)
    return int(np.cumsum(opening.astype(np.int64) - closing).max(initial=0))


_ANSWER = {
    "type": "object",
    "required": ["task", "worker", "label"],
    "properties": {
        "task": {"type": ["string", "number"]},
        "worker": {"type": ["string", "number"]},
        "label": {"type": ["string", "number", "null"], "description": "null withdraws"},
        "id": {"type": ["string", "number"], "description": "key of the delivery, stored once"},
    },
}
_JSON = "application/json"
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "wisecrowd campaign", "version": __version__},
    "components": {"securitySchemes": {
        "secret": {"type": "http", "scheme": "bearer"},
        "webhook": {"type": "apiKey", "in": "header", "name": WEBHOOK_HEADER},
    }},
    "security": [{"secret": []}],
    "paths": {
        "/next": {
            "get": {
                "summary": "Lease queries for a worker, or repeat the open ones",
                "parameters": [
                    {"name": "worker", "in": "query", "required": True,
                     "schema": {"type": "string", "maxLength": LONGEST_ID}},
                    {"name": "n", "in": "query",
                     "schema": {"type": "integer", "minimum": 1, "maximum": MOST_ASKED}},
                ],
                "responses": {"200": {"description": "queries, or a reason to stop"}},
            }
        },
        "/answers": {
            "post": {
                "summary": "Store one answer or many; the reply comes after the commit",
                "requestBody": {"content": {_JSON: {"schema": {
                    "oneOf": [_ANSWER, {"type": "array", "items": _ANSWER}]}}}},
                "responses": {
                    "200": {"description": "received and new answers"},
                    "422": {"description": "unknown task or label; nothing was stored"},
                    "507": {"description": "no room on the disk; send it again"},
                },
            }
        },
        WEBHOOKS: {
            "post": {
                "summary": "Take in a webhook of Label Studio; the reply comes after the commit",
                "security": [{"webhook": []}],
                "responses": {
                    "200": {"description": "answers that are new, withdrawn or refused"},
                    "204": {"description": "nothing that counts, or another project"},
                    "409": {"description": "the campaign has no project"},
                },
            }
        },
        "/status": {"get": {"summary": "Progress", "responses": {"200": {"description": "ok"}}}},
        "/health": {"get": {"summary": "Whether the service answers", "security": [],
                            "responses": {"200": {"description": "ok"}}}},
    },
}  # fmt: skip
