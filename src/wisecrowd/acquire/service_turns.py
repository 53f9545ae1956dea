"""Turns of requests at the campaign: first come, first served, and answers are stored together.

A campaign does one thing at a time. Threads that wait for it would compete with the one that
answers requests, and whoever is lucky is next; here requests wait in the event loop, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from wisecrowd.acquire.answer_intake import Answer
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError

MOST_TOGETHER = 1_000  # answers of one transaction, so that other requests have their turn

Result = TypeVar("Result")


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
