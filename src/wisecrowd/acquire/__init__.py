"""Acquisition: which task to ask about next, whom, and when to stop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wisecrowd.acquire.campaign import Campaign as Campaign
    from wisecrowd.acquire.campaign import Query as Query
    from wisecrowd.acquire.campaign_store import CampaignError as CampaignError
    from wisecrowd.acquire.replaying import replay as replay
    from wisecrowd.acquire.stop_rule import StopReport as StopReport
    from wisecrowd.acquire.suggesting import next_queries as next_queries

_NAMES = {
    "Campaign": "campaign",
    "CampaignError": "campaign_store",
    "Query": "campaign",
    "StopReport": "stop_rule",
    "next_queries": "suggesting",
    "replay": "replaying",
}
__all__ = ["Campaign", "CampaignError", "Query", "StopReport", "next_queries", "replay"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"wisecrowd.acquire.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'wisecrowd.acquire' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_NAMES)
