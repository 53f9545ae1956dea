"""A campaign over HTTP: who asks next, answers in, health, and a live page.

``POST /next`` leases a query or repeats the open one, ``POST /answers`` stores answers and replies
after the commit. ``POST /webhooks/label-studio`` makes ``label-studio watch`` look at once. Nothing
that was sent is echoed. Starlette is imported when it is needed.

A campaign does one thing at a time. Threads that wait for it would compete with the one that
answers requests, and whoever is lucky is next; here requests wait in the event loop, in order.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wisecrowd._version import __version__
from wisecrowd.acquire.answer_log import Answer
from wisecrowd.acquire.campaign import Campaign, Query
from wisecrowd.acquire.campaign_input import LONGEST_ID, IdError
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.acquire.label_studio_mirror import Link, leave_hint, webhook_secret
from wisecrowd.acquire.service_guard import (
    HEADERS,
    PIECE,
    SMALL,
    Guard,
    RateLimit,
    RefusedError,
    SecretCheck,
    bearer,
    hosts_of,
    parse_json,
    read_body,
    require_json,
)
from wisecrowd.core.exceptions import DataError, MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Result = TypeVar("Result")

MOST_TOGETHER = 1_000  # answers of one transaction, so that other requests have their turn
MOST_ASKED = 100  # queries of one request
LISTEN = ("127.0.0.1", 8765)
WEBHOOKS, WEBHOOK_HEADER = "/webhooks/label-studio", "X-Wisecrowd-Secret"
PAGE = Path(__file__).with_name("live_page.html")
PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_WHOLE = re.compile(r"[0-9]{1,9}")
MOST_ROWS = 100  # workers and open queries shown
MOST_ROUNDS = 200
NEXT = 10  # queries shown that would be asked next
REST = 10.0  # pause after a computation, in times of its duration: answers wait for it


class Delivery:
    """Answers of one request, and what became of them."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.result: int | Exception | None = None


class Turns:
    """The queue of requests in front of a campaign.

    Parameters
    ----------
    campaign : Campaign
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._turn = asyncio.Lock()  # wakes those who wait in their order
        self._arrived: list[Delivery] = []

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run work with the campaign in a thread, alone."""
        async with self._turn:
            return await asyncio.to_thread(work, *arguments)

    async def store(self, answers: list[Answer]) -> int:
        """Store answers, all or none; return how many are new, after the commit.

        The first one whose turn it is stores what has arrived meanwhile in the same transaction: to
        bring an answer to the disk takes longer than everything else.
        """
        mine = Delivery(answers)
        self._arrived.append(mine)
        async with self._turn:
            while mine.result is None:
                await asyncio.to_thread(self._store, self._taken())
        if isinstance(mine.result, Exception):
            raise mine.result
        return mine.result

    def _taken(self) -> list[Delivery]:
        """Return what arrived first, at least one, and take it from the queue."""
        n, size = 0, 0
        for one in self._arrived:
            size += len(one.answers)
            if n and size > MOST_TOGETHER:
                break
            n += 1
        taken, self._arrived = self._arrived[:n], self._arrived[n:]
        return taken

    def _store(self, deliveries: list[Delivery]) -> None:
        """Store deliveries; whatever happens, each of them has a result."""
        results: list[Any]
        try:
            results = self._campaign.tell_groups([one.answers for one in deliveries])
        except CampaignError as error:
            results = [error] * len(deliveries)
        except Exception as error:
            if len(deliveries) > 1:  # one of them is to blame
                for one in deliveries:
                    self._store([one])
                return
            results = [error]
        for one, result in zip(deliveries, results, strict=True):
            one.result = result


class Progress:
    """What the live page shows, computed at most a tenth of the time.

    Parameters
    ----------
    campaign : Campaign
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._lock = threading.Lock()
        self._shown: dict[str, Any] = {}
        self._rest_until = float("-inf")

    def now(self) -> dict[str, Any]:
        """Return the progress, which may be a few computations old."""
        with self._lock:
            started = time.monotonic()
            if started >= self._rest_until:
                self._shown = progress_of(self._campaign)
                ended = time.monotonic()
                self._rest_until = ended + REST * (ended - started)
            return self._shown


def warm_up() -> None:
    """Fit and show a tiny campaign: the first fit loads libraries, while answers would wait."""
    with Campaign(["a", "b"], classes=[0, 1]) as tiny:
        tiny.tell_many([(task, worker, 0) for task in "ab" for worker in "xy"])
        progress_of(tiny)


def progress_of(campaign: Campaign) -> dict[str, Any]:
    """Return labels, cost, flips, confidence over time, workers and queries.

    ``mean_confidence`` is the mean probability of the labels. Real crowds are often less accurate
    than that; ``gold_accuracy`` is measured on held-out gold.
    """
    report = campaign.stop_report()
    judged = campaign.judged_workers()
    rounds = campaign.rounds()
    return {
        **asdict(report),
        "tasks": campaign.n_tasks,
        "labels": sum(one["labels"] for one in judged),
        "budget": campaign.rules.budget,
        "policy": campaign.rules.policy,
        "mean_confidence": rounds[-1].expected if rounds else None,
        "history": [
            {"answers": one.n_answers, "changed": len(one.changed), "expected": one.expected,
             "gold": one.gold}
            for one in rounds[-MOST_ROUNDS:]
        ],
        "workers": sorted(judged, key=lambda one: (-one["labels"], str(one["worker"])))[:MOST_ROWS],
        "queries": [one._asdict() for one in campaign.open_queries()[:MOST_ROWS]],
        "next": [one._asdict() for one in campaign.preview(NEXT)],
    }  # fmt: skip


def make_app(
    campaign: Campaign,
    secret: str | None = None,
    limit: RateLimit | None = None,
    listen: tuple[str, int] = LISTEN,
) -> Guard:
    """Return the service of a campaign as an ASGI application.

    Parameters
    ----------
    campaign : Campaign
    secret : str, optional
        Every request but the page and ``/health`` needs ``Authorization: Bearer SECRET``. Webhooks
        of Label Studio need the secret of ``webhook_secret`` in ``X-Wisecrowd-Secret``.
    limit : RateLimit, optional
    listen : tuple of address and port
        Where it listens. Without a secret, requests for another host are refused.
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
    app = Starlette(routes=[
        Route("/answers", service.answers, methods=["POST"]),  # the most frequent ones first
        Route("/next", service.next_queries, methods=["POST"]),
        Route("/next", service.shown_queries, methods=["GET"]),
        Route("/", service.page), Route("/health", service.health),
        Route("/openapi.json", service.openapi), Route("/status", service.status),
        Route(WEBHOOKS, service.label_studio, methods=["POST"]),
    ])  # fmt: skip
    # A name that leads here does not help a page elsewhere that does not know the secret, and a
    # service behind a proxy has names of which it knows nothing.
    return Guard(app, hosts_of(*listen) if secret is None else None)


class CampaignService:
    """The endpoints. The campaign works in a thread, so that requests do not wait for a fit."""

    def __init__(self, campaign: Campaign, secret: str | None, limit: RateLimit) -> None:
        self._campaign, self._secret, self._limit = campaign, secret, limit
        self._secrets = SecretCheck()
        self._progress = Progress(campaign)
        self._large = asyncio.Semaphore(1)  # large bodies are parsed one at a time
        self._turns = Turns(campaign)

    async def page(self, request: Request) -> Response:
        """Return the live page, which holds no data of its own."""
        from starlette.responses import HTMLResponse

        headers = HEADERS | {"Content-Security-Policy": PAGE_POLICY}
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers=headers)

    async def health(self, request: Request) -> Response:
        """Return that the service answers."""
        return _reply(200, {"status": "ok", "version": __version__})

    async def openapi(self, request: Request) -> Response:
        """Return the description of the endpoints."""
        return _reply(200, OPENAPI)

    async def status(self, request: Request) -> Response:
        """Return progress, reasons and workers for the live page."""
        return await self._guarded(request, partial(self._after_refits, self._status))

    async def shown_queries(self, request: Request) -> Response:
        """Return the open queries of a worker and those that would be next; lease nothing."""
        return await self._guarded(request, partial(self._after_refits, self._show))

    async def next_queries(self, request: Request) -> Response:
        """Return the open queries of a worker, or lease new ones."""
        return await self._guarded(request, partial(self._after_refits, self._next))

    async def answers(self, request: Request) -> Response:
        """Store answers; the reply comes after the commit."""
        return await self._guarded(request, self._answers)

    async def label_studio(self, request: Request) -> Response:
        """Take a webhook of Label Studio as a hint that something has changed there."""
        work = partial(self._turns.run, self._label_studio)
        return await self._guarded(request, work, hook=True)

    async def _after_refits(self, work: Any, request: Request, given: Any) -> Any:
        """Do the work when all refits that are due are done; others have their turn in between."""
        while await self._turns.run(self._campaign.catch_up):
            pass
        return await self._turns.run(work, request, given)

    async def _guarded(self, request: Request, work: Any, hook: bool = False) -> Response:
        """Check the secret and the body, do the work, and translate errors."""
        from starlette.requests import ClientDisconnect

        try:
            client = request.client.host if request.client else ""
            if not self._limit.allows(client, time.monotonic()):
                raise RefusedError(429, "Too many requests; wait a second.")
            await self._authorise(request, hook)
            given = await self._body(request, hook) if request.method == "POST" else None
            found = await work(request, given)
            return _reply(204 if found is None else 200, found)
        except RefusedError as refused:
            return _reply(refused.status, {"error": refused.sentence}, refused.headers)
        except ClientDisconnect:
            return _reply(400, {"error": "The body is incomplete."})  # which nobody reads
        except CampaignError:
            return _reply(507, {"error": "The answer was not stored; send it again later."})
        except IdError:
            return _reply(422, {"error": IDS})
        except (DataError, ParameterError):
            return _reply(422, {"error": "A task, worker or label is not part of the campaign."})

    async def _authorise(self, request: Request, hook: bool) -> None:
        if self._secret is None:
            return
        if hook:
            given, wanted = request.headers.get(WEBHOOK_HEADER, ""), webhook_secret(self._secret)
            await self._secrets.require(given, wanted, f"the header {WEBHOOK_HEADER}")
            return
        given = bearer(request.headers.get("authorization", ""))
        await self._secrets.require(given, self._secret, "the header Authorization: Bearer SECRET")

    async def _body(self, request: Request, hook: bool) -> Any:
        """Return the content of a body; that of a webhook is not even kept."""
        from starlette.concurrency import run_in_threadpool

        require_json(request)
        content = await read_body(request, keep=not hook)
        if hook:
            return None
        if len(content) <= SMALL:
            return parse_json(content)
        if len(content) <= PIECE:
            return await run_in_threadpool(parse_json, content)
        async with self._large:
            return await run_in_threadpool(parse_json, content)

    def _show(self, request: Request, body: Any) -> dict[str, Any]:
        worker, n = request.query_params.get("worker", ""), request.query_params.get("n", "1")
        wanted = _n_asked(int(n) if _WHOLE.fullmatch(n) else 0)
        queries = self._campaign.open_queries(_worker(worker))[:wanted]
        if len(queries) < wanted:
            queries += self._campaign.preview(wanted - len(queries), workers=[worker])
        return self._queries(queries, worker)

    def _next(self, request: Request, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict):
            raise RefusedError(400, WORKER)
        worker, n = _worker(body.get("worker")), _n_asked(body.get("n", 1))
        queries = self._campaign.open_queries(worker)[:n]
        if len(queries) < n:
            queries += self._campaign.ask(n - len(queries), workers=[worker])
        return self._queries(queries, worker)

    def _queries(self, queries: list[Query], worker: Any) -> dict[str, Any]:
        # Neither score nor reason: workers must not see which question is gold.
        found = [{"id": one.id or None, "task": one.task} for one in queries]
        report = None if found else asdict(self._campaign.stop_report([worker]))
        return {"queries": found, "stop": None if report is None else report["reason"]}

    async def _answers(self, request: Request, body: Any) -> dict[str, Any]:
        rows = body if isinstance(body, list) else [body]
        answers = []
        for row in rows:
            if not isinstance(row, dict) or not {"task", "worker", "label"} <= set(row):
                raise RefusedError(400, "An answer is an object with task, worker and label.")
            values = [row[name] for name in ("task", "worker", "label")]
            if any(isinstance(value, dict | list) for value in (*values, row.get("id"))):
                raise RefusedError(400, "Task, worker, label and id are texts or numbers.")
            answers.append((*values, None, row.get("id")))
        return {"received": len(answers), "new": await self._turns.store(answers)}

    def _label_studio(self, request: Request, body: Any) -> None:
        if Link.of(self._campaign) is None:
            raise RefusedError(409, "The campaign has no project; run label-studio watch.")
        leave_hint(self._campaign)

    def _status(self, request: Request, body: Any) -> dict[str, Any]:
        return self._progress.now()


def _worker(value: Any) -> Any:
    """Return the worker of a request."""
    if not isinstance(value, str | int | float) or value == "":
        raise RefusedError(400, WORKER)
    if isinstance(value, str) and len(value) > LONGEST_ID:
        raise RefusedError(400, IDS)
    return value


def _n_asked(value: Any) -> int:
    """Return the number of queries that a request asks for."""
    if type(value) is not int or not 1 <= value <= MOST_ASKED:
        raise RefusedError(400, f"n is a whole number from 1 to {MOST_ASKED}.")
    return value


def _reply(status: int, content: Any, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import JSONResponse, Response

    if content is None:
        return Response(status_code=status)
    return JSONResponse(content, status, headers=headers)


IDS = (
    f"Ids are texts of at most {LONGEST_ID} characters or finite numbers, all workers, all tasks "
    "and all labels of the same type."
)
WORKER = 'Name the worker: GET /next?worker=ann shows queries, POST /next {"worker": "ann"} leases.'
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
            "post": {
                "summary": "Lease queries for a worker, or repeat the open ones",
                "requestBody": {"content": {_JSON: {"schema": {
                    "type": "object", "required": ["worker"], "properties": {
                        "worker": {"type": ["string", "number"], "maxLength": LONGEST_ID},
                        "n": {"type": "integer", "minimum": 1, "maximum": MOST_ASKED},
                    }}}}},
                "responses": {"200": {"description": "queries, or a reason to stop"}},
            },
            "get": {
                "summary": "Show the open queries of a worker and the next ones; leases nothing",
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
                    "422": {"description": "unknown task or label, or no id; nothing was stored"},
                    "507": {"description": "no room on the disk; send it again"},
                },
            }
        },
        WEBHOOKS: {
            "post": {
                "summary": "Have label-studio watch look at the project; the body does not matter",
                "security": [{"webhook": []}],
                "responses": {
                    "204": {"description": "received"},
                    "409": {"description": "the campaign has no project"},
                },
            }
        },
        "/status": {"get": {"summary": "Progress", "responses": {"200": {"description": "ok"}}}},
        "/health": {"get": {"summary": "Whether the service answers", "security": [],
                            "responses": {"200": {"description": "ok"}}}},
    },
}  # fmt: skip
