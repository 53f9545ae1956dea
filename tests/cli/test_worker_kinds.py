"""``--kinds`` and ``--exclude-workers``: the same rule in every command that reads annotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXPORT = Path(__file__).parents[1] / "io" / "fixtures" / "label_studio.json"
SAID = "1 model with 3 labels is left out, because humans labelled too; --kinds human,model counts"


@pytest.mark.parametrize("command", ["aggregate", "audit", "compare"])
def test_humans_only_by_default_and_said(cli, command):
    assert (
        SAID in cli(command, EXPORT, *(["--methods", "majority-vote"] * (command == "compare"))).err
    )


def test_aggregate_with_models_and_without_a_worker(cli):
    done = cli("aggregate", EXPORT, "--json", "--kinds", "human, model")
    assert json.loads(done.out)["n_workers"] == 4
    done = cli("aggregate", EXPORT, "--json", "--kinds", "all", "--exclude-workers", "mod*",
               "--exclude-workers", "1")  # fmt: skip
    found = json.loads(done.out)
    assert found["n_workers"] == 2
    assert "2 workers with 6 labels left out, as --exclude-workers asks" in found["notes"]
    assert cli("aggregate", EXPORT, "--kinds", "modle").code == 2


def test_inspect_and_convert(cli, tmp_path):
    out = cli("inspect", EXPORT).out
    assert "content   8 labels by 3 workers" in out
    assert f"note      {SAID}" in out
    assert "content   3 labels by 1 workers" in cli("inspect", EXPORT, "--kinds", "model").out
    table = tmp_path / "all.csv"
    assert cli("convert", EXPORT, table).code == 0  # nothing is lost by converting
    assert table.read_text().count("model:vit-1") == 3
    assert SAID in cli("aggregate", table).err  # and the table means the same as the export
    assert cli("convert", EXPORT, table, "--kinds", "human").code == 0
    assert "model:vit-1" not in table.read_text()
