from __future__ import annotations

import csv
import re
import runpy
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_demo_gains_on_majority_vote_and_writes_its_results(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DEMO), run_name="__main__")
    out = capsys.readouterr().out
    assert "majority vote" in out
    for name in ("labels.csv", "workers.csv"):
        assert f"demo-output/{name}" in out
        assert (tmp_path / "demo-output" / f"{name}.manifest.json").exists()
    page = tmp_path / "demo-output" / "report.html"
    assert out.rstrip().endswith(str(page))
    assert "The demo&#39;s crowd" in page.read_text(encoding="utf-8")
    with (tmp_path / "demo-output" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    right = sum(row["label"] == row["truth"] for row in rows) / len(rows)
    assert f"auto           {right:.1%} correct" in out
    assert re.search(r"reason +[a-z-]+ explains \d+% of .*majority labels were changed", out)
    assert right > 0.9
