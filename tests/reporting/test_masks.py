"""Report on masks."""

from __future__ import annotations

import json

from wisecrowd import simulate
from wisecrowd.reporting.document import render, report


def test_page_on_masks():
    made = simulate.masks(14, 6, simulate.Dense(), height=30, width=28, offset=0.4, random_state=2)
    truth = dict(enumerate(made.truth.tolist()))
    page = report(made.data, truth=truth, files=["masks.csv"], reading=["--type", "masks"])
    read = json.loads(json.dumps(page.summary, allow_nan=False))
    assert render(read) == page.html
    assert read["verdict"]["n_labels"] == 84
    assert 0.3 < read["verdict"]["measured"]["scores"]["iou"] < 1
    assert [row["iou"] for row in read["tasks"]["rows"]] == sorted(
        row["iou"] for row in read["tasks"]["rows"]
    )
    flagged = [row for row in read["workers"]["rows"] if row["flags"]]
    assert flagged
    assert all(row["ratio"] > 1.2 or row["ratio"] < 1 / 1.2 for row in flagged)
    assert {row["name"] for row in read["methods"]["rows"]} == {"mask-em", "mask-vote"}
    assert "Images people disagree about" in page.html
    assert "--type masks" in page.html


def test_page_without_shared_images():
    alone = simulate.masks(5, 3, simulate.PerTask(1), height=20, width=20).data
    assert "No image has two masks." in report(alone).html
