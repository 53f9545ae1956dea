"""Progress of a campaign as plain data, for its live page."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any

from wisecrowd.acquire.campaign import Campaign

MOST_ROWS = 100  # workers and open queries shown
MOST_ROUNDS = 200
NEXT = 10  # queries shown that would be asked next
REST = 10.0  # pause after a computation, in times of its duration: answers wait for it


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
