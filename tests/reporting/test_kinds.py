"""Reports on other kinds than classes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import CrowdLabels, CrowdNumbers, CrowdPairs, CrowdSequences, simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.reporting import kind_charts
from wisecrowd.reporting.document import render, report, summarize
from wisecrowd.reporting.markdown import markdown_of


def crowd(kind, names=None, seed=0):
    """Return a small crowd with one odd worker; names replace ids of tasks, workers and items."""
    rng = np.random.default_rng(seed)
    task, worker = np.divmod(np.arange(480), 8)
    tasks = np.array([f"t{i}" for i in range(60)], dtype=object)
    workers = np.array([f"w{j}" for j in range(8)], dtype=object)
    items = np.array([f"m{a}" for a in range(10)], dtype=object)
    if names:
        tasks[: len(names)] = names
        workers[: min(len(names), 8)] = names[:8]
        items[: len(names)] = names[:10]
    if kind == "numbers":
        value = rng.normal(5, 2, 60)[task] + rng.normal(0, 1, 480) + 4.0 * (worker == 7)
        return CrowdNumbers.from_arrays(tasks[task], workers[worker], value)
    if kind == "pairs":
        left = rng.integers(0, 10, 480)
        right = (left + rng.integers(1, 10, 480)) % 10
        win = rng.normal(0, 1.5, 10)
        outcome = (win[left] - win[right] + rng.logistic(size=480) < 0).astype(int)
        outcome = np.where(worker == 7, 1 - outcome, outcome)
        return CrowdPairs.from_arrays(None, workers[worker], items[left], items[right], outcome)
    if kind == "sequences":
        made = simulate.sequences(
            60, 8, simulate.Dense(), mean_length=5, density=0.3, random_state=seed
        ).data
        tags = made.tags.copy()
        tags[made.token_worker == 7] = 0
        return replace(made, tags=tags, tasks=tasks, workers=workers)
    if kind == "sets":
        truth = rng.random((60, 4)) < [0.7, 0.5, 0.3, 0.4]
        ticked = rng.random((480, 4)) < np.where(truth[task], 0.85, 0.1)
        ticked &= (worker < 7)[:, None] | (np.cumsum(ticked, axis=1) == 1)
        classes = np.array([*(names or "abcd")[:3], "d"], dtype=object)
        sets = [classes[one].tolist() for one in ticked]
        return CrowdSets.from_arrays(tasks[task], workers[worker], sets, classes=classes.tolist())
    seen = rng.normal(2, 1.2, 60)[task] + rng.normal(0, 0.6, 480) + 1.5 * (worker == 7)
    return CrowdLabels.from_arrays(
        tasks[task], workers[worker], np.clip(np.rint(seen), 0, 4).astype(int), classes=range(5),
        ordered=True,
    )  # fmt: skip


SECTIONS = {
    "numbers": ["verdict", "next", "workers", "tasks", "shared", "methods", "health", "reproduce"],
    "pairs": ["verdict", "next", "ranking", "workers", "sides", "contradictions", "connectivity",
              "methods", "health", "reproduce"],
    "sets": ["verdict", "next", "workers", "classes", "tasks", "methods", "health", "reproduce"],
    "ordered": ["verdict", "next", "workers", "tasks", "classes", "network", "methods", "bias",
                "health", "reproduce"],
    "sequences": ["verdict", "next", "boundaries", "workers", "tasks", "methods", "health",
                  "reproduce"],
}  # fmt: skip


@pytest.fixture(scope="module", params=SECTIONS)
def made(request):
    return request.param, report(crowd(request.param), files=["a file.csv"], reading=[])


class Sections(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.charts = [], 0

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "section" and given.get("aria-labelledby", "").endswith("-title"):
            self.found.append(given["id"])
        self.charts += tag == "svg" and given.get("role") == "img"


def test_page_has_the_sections_and_charts(made):
    kind, page = made
    parser = Sections()
    parser.feed(page.html)
    assert parser.found == SECTIONS[kind]
    assert parser.charts >= 1 + (kind == "pairs")
    assert "<script src" not in page.html
    assert "http://" not in page.html.replace("http://www.w3.org", "")


def test_summary_is_json_and_renders_again(made):
    kind, page = made
    read = json.loads(json.dumps(page.summary, allow_nan=False))
    assert read["kind"] == kind
    assert render(read) == page.html
    assert read["verdict"]["n_labels"] == 480


def test_the_odd_worker_is_flagged(made):
    kind, page = made
    wanted = {"numbers": "biased-workers", "pairs": "adversaries", "ordered": "biased-workers",
              "sequences": "marks-nothing", "sets": "one-box-workers"}  # fmt: skip
    steps = {step["id"]: step for step in page.summary["next"]}
    assert steps[wanted[kind]]["affected"] == ["w7"]
    row = next(row for row in page.summary["workers"]["rows"] if row["worker"] == "w7")
    assert wanted[kind] in row["flags"]
    assert steps[wanted[kind]]["command"].startswith("wisecrowd ")


def test_hostile_ids_are_escaped(hostile_names):
    for kind in SECTIONS:
        page = report(crowd(kind, hostile_names)).html
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\x00" not in page


@pytest.fixture
def hostile_names():
    return [
        "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "x" * 5000,
        "a\x00b", "שלום\u202eevil",
    ]  # fmt: skip


def test_numbers_of_workers_are_those_of_the_audit():
    data = crowd("numbers")
    summary = summarize(data)
    audit = wc.audit.audit_crowd(data, parts=["bias"])["bias"]
    for row in summary["workers"]["rows"]:
        j = data.workers.tolist().index(row["worker"])
        assert row["bias"] == pytest.approx(audit.bias[j], rel=1e-4)
        assert row["noise_low"] < row["noise"] < row["noise_high"]
    ratios = [row["ratio"] for row in summary["tasks"]["rows"]]
    assert ratios == sorted(ratios, reverse=True)


def test_ranking_is_that_of_the_fit():
    data = crowd("pairs")
    summary = summarize(data, method="bradley-terry")
    fit = wc.aggregation.BradleyTerry().fit(data)
    rows = summary["ranking"]["rows"]
    assert [row["item"] for row in rows] == data.items[np.argsort(fit.rank_)].tolist()
    assert [row["rank"] for row in rows] == list(range(1, 11))
    assert all(row["rank_low"] <= row["rank"] <= row["rank_high"] for row in rows)
    assert summary["verdict"]["leader"] == rows[0]["item"]


def test_truth_and_gold():
    data = crowd("numbers")
    truth = dict(zip(data.tasks.tolist(), range(60), strict=True))
    assert set(summarize(data, truth=truth)["verdict"]["measured"]["scores"]) >= {"r2", "rmse"}
    gold = summarize(data, gold={data.tasks[0]: 100.0, data.tasks[1]: 3.0})
    assert gold["verdict"]["measured"]["from"] == "gold"
    items = summarize(crowd("pairs"), truth={f"m{a}": a for a in range(10)})
    assert "kendall_tau" in items["verdict"]["measured"]["scores"]


def test_methods_are_compared_by_held_out_labels(made):
    kind, page = made
    if kind == "ordered":
        assert "thresholds" in page.summary["methods"]["names"]
        return
    rows = page.summary["methods"]["rows"]
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert rows[0]["near_best"]
    assert page.summary["methods"]["best"] == rows[0]["name"]


def test_claims_of_spans_and_texts_are_said_to_be_no_accuracy():
    spans = report(crowd("sequences"))
    said = spans.summary["verdict"]["context"]
    assert "not an estimate of accuracy. In a published crowd" in said
    assert said in spans.html
    assert markdown_of(spans.summary).count(said) == 1
    texts = report(simulate.texts(20, 5, simulate.PerTask(3), random_state=0).data)
    verdict = texts.summary["verdict"]
    assert verdict["context"].startswith("Agreement on the words is")
    assert verdict["context"] in texts.html
    assert "onfidence" not in texts.html.split("<dl")[1].split("</dl>")[0]
    assert "| mean agreement | " in markdown_of(texts.summary)
    old = dict(texts.summary, verdict={k: v for k, v in verdict.items() if k != "context"})
    old["verdict"]["confidence"] = old["verdict"].pop("mean_agreement")
    assert "Mean agreement" in render(old)


def test_wrong_methods_and_fits_are_refused():
    numbers, pairs = crowd("numbers"), crowd("pairs")
    with pytest.raises(ParameterError, match="takes labels, and these are numbers"):
        report(numbers, method="dawid-skene")
    fit = wc.aggregation.Mean().fit(crowd("numbers", ["other"]))
    with pytest.raises(DataError, match="has other tasks"):
        report(numbers, fit=fit)
    with pytest.raises(ParameterError, match="not fitted"):
        report(pairs, fit=wc.aggregation.BradleyTerry())


def test_whole_tables_are_written(tmp_path):
    rng = np.random.default_rng(0)
    left = rng.integers(0, 400, 3000)
    right = (left + rng.integers(1, 400, 3000)) % 400
    data = CrowdPairs.from_arrays(
        None, rng.integers(0, 20, 3000), left, right, rng.integers(0, 2, 3000)
    )
    written = report(data, tmp_path / "page.html").save(tmp_path / "page.html", tables=True)
    assert [path.name for path in written] == ["page.html", "page.ranking.parquet"]
    assert "Showing 300 of 400 items" in re.sub("\u202f", "", written[0].read_text())


@pytest.mark.parametrize(
    "data",
    [
        CrowdNumbers.from_arrays(["t"], ["w"], [1.0]),
        CrowdNumbers.from_arrays([0, 0, 1, 1], list("abab"), [2.0] * 4),
        CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"]),
        CrowdPairs.from_arrays(None, None, ["x", "a"], ["y", "b"], ["tie", "left"]),
        CrowdLabels.from_arrays(["t"], ["w"], [1], classes=range(3), ordered=True),
    ],
    ids=["one number", "constant", "one vote", "two parts", "one grade"],
)
def test_hardly_any_labels(data):
    made = report(data)
    assert "No action" in made.html or "finding" in made.html
    json.dumps(made.summary, allow_nan=False)


def test_workers_are_withheld():
    from wisecrowd.io.pseudonyms import pseudonymize

    for kind in SECTIONS:
        data = pseudonymize(crowd(kind), b"0123456789abcdef0123456789abcdef")
        page = report(data, withhold_below=1000)
        assert page.summary["workers"]["rows"] == []
        assert not any(worker in page.html for worker in data.workers.tolist())


def test_ticks():
    assert kind_charts.ticks(0, 0) == [0]
    assert kind_charts.ticks(0.0, 10.0) == [0, 2, 4, 6, 8, 10]
    assert kind_charts.bias_and_noise([]) is None
    assert kind_charts.scores_by_rank([]) is None


def test_tasks_show_the_text_of_spans_and_what_is_answered():
    rows = [("d", "ann", 0, 5, "PER"), ("d", "bob", 0, 5, "PER"), ("d", "cem", 0, 8, "PER"),
            ("d", "ann", 14, 18, "LOC"), ("e", "bob", None, None, None)]  # fmt: skip
    task, worker, start, end, label = map(list, zip(*rows, strict=True))
    texts = ["Ada & B went to Rome."] * 4 + [None]
    data = CrowdSequences.from_spans(task, worker, start, end, label, text=texts)
    summary = summarize(data)
    (row,) = summary["tasks"]["rows"]
    shown = [(one["text"], one["start"], one["end"], one["count"]) for one in row["spans"]]
    assert shown[:2] == [("Ada &", 0, 5, 2), ("Ada & B ", 0, 8, 1)]
    assert row["spans"][0]["confidence"] > 0.5
    assert row["spans"][1]["confidence"] is None
    page = render(summary)
    assert "<bdi>Ada &amp;</bdi>" in page


def test_boundaries_and_types_have_rates_and_confusions(made):
    kind, page = made
    if kind != "sequences":
        return
    found = page.summary["boundaries"]
    assert [row["habit"] for row in found["rows"]][:3] == ["too long", "too short", "split"]
    assert {row["habit"]: row["of"] for row in found["rows"]}["split"] == "spans of several tokens"
    for row in found["types"]:
        assert sum(row["given"]) == pytest.approx(1, abs=1e-3)
    step = next(one for one in page.summary["next"] if one["id"] == "marks-nothing")
    assert step["command"].endswith("--prune-to cleaned.csv --unlabelled drop")
    flagged = {row["worker"]: row["flags"] for row in page.summary["workers"]["rows"]}
    assert flagged["w7"] == ["marks-nothing"]


def test_biases_beyond_zero_are_counted_as_the_table_shows_them(made):
    kind, page = made
    if kind != "ordered":
        return
    found = page.summary["bias"]
    clear = [row for row in found["rows"] if row["low"] > 0 or row["high"] < 0]
    assert len(clear) == found["n_beyond"] > 0
    assert len([row for row in found["rows"] if row["flags"]]) == found["n_strong"]
