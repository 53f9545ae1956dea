"""Acquisition: which task to ask about next, whom, and when to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd.core.lazy import facade

if TYPE_CHECKING:
    from wisecrowd.acquire.campaign import Campaign as Campaign
    from wisecrowd.acquire.campaign import Query as Query
    from wisecrowd.acquire.campaign_store import CampaignError as CampaignError
    from wisecrowd.acquire.history import StopReport as StopReport
    from wisecrowd.acquire.replaying import replay as replay
    from wisecrowd.acquire.suggesting import next_queries as next_queries

__getattr__, __dir__ = facade(__name__)
__all__ = ["Campaign", "CampaignError", "Query", "StopReport", "next_queries", "replay"]
