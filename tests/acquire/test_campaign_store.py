"""Databases that were tampered with: one sentence, never a traceback or other answers."""

from __future__ import annotations

import pytest
from tests.support.damaged_campaigns import DAMAGES, make_campaign, tamper

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_mirror import Link
from wisecrowd.core.exceptions import DataError


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = tmp_path_factory.mktemp("campaign") / "campaign.db"
    make_campaign(path)
    return path.read_bytes()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_campaign_is_refused_by_one_sentence(intact, tmp_path, damage):
    path = tmp_path / "campaign.db"
    path.write_bytes(intact)
    DAMAGES[damage](path)
    with pytest.raises(DataError) as refused:
        Campaign.open(path)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 500
    assert any(words in message for words in ("copy", "version", "start one", ".recover"))


def test_the_intact_one_opens(intact, tmp_path):
    path = tmp_path / "campaign.db"
    path.write_bytes(intact)
    with Campaign.open(path) as campaign:
        assert campaign.labels.n_annotations == 12
        assert len(campaign.open_queries()) == 2


@pytest.mark.parametrize(
    "value", ["5", "[]", "{}", '"x"', '{"url": "u", "project": 7, "control": "c", "task_key": 5}',
              '{"url": "u", "project": "7", "control": "c", "task_key": null}']
)  # fmt: skip
def test_a_damaged_link(intact, tmp_path, value):
    path = tmp_path / "campaign.db"
    path.write_bytes(intact)
    tamper(path, ("UPDATE meta SET value = ? WHERE name = 'label_studio'", (value,)))
    with Campaign.open(path) as campaign, pytest.raises(DataError, match="link to Label Studio"):
        Link.of(campaign)
