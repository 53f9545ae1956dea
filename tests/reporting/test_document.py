from __future__ import annotations

import json

import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.io.tables import read_frame
from wisecrowd.reporting import worker_rows
from wisecrowd.reporting.document import Report
from wisecrowd.storage import Manifest, read_manifest


@pytest.fixture
def made(study, summary):
    fit = study.fit
    tables = {"workers": fit.worker_columns(), "tasks": fit.task_columns()}
    return Report(summary, tables, Manifest.describe(method="auto"))


def test_report_is_public_and_writes_one_page(labels, tmp_path):
    found = wc.report(labels[:60], tmp_path / "report.html", method="majority-vote", title="A <b>")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>A &lt;b&gt;</title>" in page
    assert found.summary["verdict"]["method"] == "majority-vote"
    assert read_manifest(tmp_path / "report.html").method == "majority-vote"
    assert repr(found) == "Report(60 tasks, 16 workers)"
    assert "wc.audit" in page or "wc.aggregate" in page  # no file: calls, not commands


def test_a_report_takes_at_most_twenty_fits(tmp_path, monkeypatch):
    population = 20 * simulate.OneCoinWorkers(8, 2)
    made = simulate.crowd(300, population, simulate.PerTask(4), n_classes=3, random_state=0)
    fitted, fit = [], Aggregator.fit

    def counted(method, *given, **named):
        fitted.append(type(method).__name__)
        return fit(method, *given, **named)

    monkeypatch.setattr(Aggregator, "fit", counted)
    wc.report(made.labels, tmp_path / "report.html")
    assert {"Auto", "MajorityVote", "GLAD"} <= set(fitted)
    assert "Wawa" not in fitted  # a member of the default method
    assert len(fitted) <= 20


def test_whole_tables_lie_beside_the_page(made, study, tmp_path, monkeypatch):
    monkeypatch.setitem(made.summary, "workers", {**made.summary["workers"], "total": 12_034})
    written = made.save(tmp_path / "r.html", tables=True)
    assert [path.name for path in written] == ["r.html", "r.workers.parquet", "r.tasks.parquet"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Showing 16 of 12\u202f034 workers" in page
    assert "r.workers.parquet" in page
    kept = read_frame(tmp_path / "r.workers.parquet")
    assert kept["worker"].to_pylist() == study.labels.workers.tolist()
    assert "parquet" not in made.html  # nothing was written for this one
    assert [path.name for path in made.save(tmp_path / "one.html")] == ["one.html"]
    assert {path.name for path in tmp_path.glob("one.*")} == {"one.html", "one.html.manifest.json"}


def test_a_failed_write_leaves_what_was_there(made, tmp_path, monkeypatch):
    from wisecrowd.reporting import document

    (tmp_path / "r.html").write_text("old")
    monkeypatch.setattr(document, "render", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == "old"


def test_the_page_can_be_made_of_stored_data(made, summary):
    from wisecrowd.reporting.renderer import render

    assert render(json.loads(json.dumps(summary))) == made.html


def test_a_notebook_shows_it_in_a_frame_of_its_own(made):
    shown = made._repr_html_()
    assert shown.startswith("<iframe")
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown


def test_page_of_very_many_workers_is_small(study, summary):
    """The page grows with what is shown, and that is capped."""
    from wisecrowd.reporting.renderer import render

    row = max(summary["workers"]["rows"], key=lambda row: len(json.dumps(row)))
    full = {**summary["workers"], "rows": [row] * worker_rows.MOST_WORKERS, "total": 10_000}
    assert len(render({**summary, "workers": full}).encode()) < 1_000_000
