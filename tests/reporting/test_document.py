"""The page: escaped, self-contained, readable, and what is written beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import MissingDependencyError
from wisecrowd.io.tables import read_frame
from wisecrowd.reporting import workers
from wisecrowd.reporting.document import Report, embedded_json, render
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
    from wisecrowd.reporting.document import render

    assert render(json.loads(json.dumps(summary))) == made.html


def test_a_notebook_shows_it_in_a_frame_of_its_own(made):
    shown = made._repr_html_()
    assert shown.startswith("<iframe")
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown


def test_page_of_very_many_workers_is_small(study, summary):
    """The page grows with what is shown, and that is capped."""
    from wisecrowd.reporting.document import render

    row = max(summary["workers"]["rows"], key=lambda row: len(json.dumps(row)))
    full = {**summary["workers"], "rows": [row] * workers.MOST_WORKERS, "total": 10_000}
    assert len(render({**summary, "workers": full}).encode()) < 1_000_000


TEMPLATES = files("wisecrowd.reporting") / "templates"
VOID = {"meta", "br", "input", "link", "img"}


class Page(HTMLParser):
    """The structure of a page: elements with attributes and parents, and the text of each."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[dict] = []
        self._open: list[int] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        parents = [self.elements[n]["tag"] for n in self._open]
        sections = [self.elements[n]["attrs"].get("id") for n in self._open]
        self.elements.append(
            {"tag": tag, "attrs": dict(attrs), "in": parents, "ids": sections, "text": ""}
        )
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        assert self.elements[self._open[-1]]["tag"] == tag, f"</{tag}> closes another element"
        self._open.pop()

    def handle_data(self, data):
        for n in self._open:
            self.elements[n]["text"] += data

    def all(self, *tags: str) -> list[dict]:
        return [e for e in self.elements if e["tag"] in tags]


@pytest.fixture(scope="module")
def html(summary):
    return render(summary, {"tasks": "report.tasks.parquet"})


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


@pytest.fixture(scope="module")
def hostile_html(hostile_summary):
    return render(hostile_summary)


def test_nothing_comes_from_anywhere_else(page, html):
    for element in page.elements:
        assert element["tag"] not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "srcset", "action", "style"} & element["attrs"].keys()
        assert not any(name.startswith("on") for name in element["attrs"])
        assert element["attrs"].get("href", "#").startswith("#")  # see test_task_examples
    assert "url(" not in html
    assert "@import" not in html


def test_the_policy_allows_exactly_our_style_and_script(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        content = re.search(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_sections_are_in_order_and_headings_do_not_jump(page):
    titles = [e["text"].strip() for e in page.all("h2")]
    assert titles == [
        "Verdict", "Next steps", "Workers", "Tasks people disagree about",
        "Confused classes", "Agreement network and suspected collusion",
        "Comparison of methods", "Calibration", "Value of more labels",
        "Money and time", "Data health", "How to reproduce this report",
    ]  # fmt: skip
    levels = [int(e["tag"][1]) for e in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_every_chart_has_words_and_a_table_in_its_section(page):
    charts = [e for e in page.all("svg") if "aria-hidden" not in e["attrs"]]
    assert len(charts) >= 5
    assert all("svg" in e["in"] or "td" in e["in"] for e in page.all("svg") if e not in charts)
    tables = [table["ids"] for table in page.all("table")]
    for chart in charts:
        assert chart["attrs"]["role"] == "img"
        assert len(chart["attrs"]["aria-label"]) > 20
        section = [name for name in chart["ids"] if name][-1]
        assert any(section in ids for ids in tables)


def test_tables_have_captions_and_headings(page):
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(e["attrs"].get("scope") in ("row", "col") for e in page.all("th"))


def test_controls_have_labels_and_regions_can_be_reached(page):
    named = {e["attrs"].get("for") for e in page.all("label")}
    for control in page.all("input", "select"):
        assert control["attrs"]["id"] in named
    for button in page.all("button"):
        assert button["text"].strip()
    for box in page.all("div"):
        if box["attrs"].get("role") == "region":
            assert box["attrs"]["tabindex"] == "0"
            assert box["attrs"]["aria-label"]
    ids = [e["attrs"]["id"] for e in page.elements if "id" in e["attrs"]]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link["attrs"]["href"][1:] in ids


def test_it_can_be_read_without_a_script(page, summary):
    """Only what needs a script is hidden without one; a worker's panel opens by its link."""
    scripted = [e for e in page.elements if "scripted" in e["attrs"].get("class", "")]
    assert {e["tag"] for e in scripted} == {"button", "div", "figcaption", "span"}
    rows = [e for e in page.all("tr") if "tbody" in e["in"] and "workers" in e["ids"]]
    assert len(rows) >= summary["workers"]["n_shown"]
    style = (TEMPLATES / "style.css").read_text()
    assert ".worker:target { display: block; }" in style


def test_caps_name_the_file_with_the_whole_table(html):
    assert re.search(r"Showing 100 of \d+ tasks with divided votes.*report\.tasks\.parquet", html)


def test_a_step_shows_its_evidence_and_its_effect(summary):
    step = {
        **summary["next"][0],
        "examples": [{"task": f"<i>{n}</i>", "votes": "4 fox"} for n in range(5)],
        "effect": {"text": "Changes 32 of 500 labels."},
        "declined": ["Pruning lowers the score."],
    }
    card = re.search(r'<li class="card.*?</li>\n', render({**summary, "next": [step]}), re.DOTALL)
    page = Page(card.group().rsplit("</li>", 1)[0])
    rows = [e["text"] for e in page.all("tr")]
    assert rows == ["TaskVotes", *(f"<i>{n}</i>4 fox" for n in range(3))]
    text = "".join(e["text"] for e in page.all("p", "li"))
    assert "Changes 32 of 500 labels." in text
    assert "Pruning lowers the score." in text
    shown = card.group()
    assert shown.count("Changes 32 of 500 labels.") == shown.count("Pruning lowers") == 1
    assert f"<code>{step['id']}</code>" not in shown


@pytest.mark.parametrize(
    ("n", "says"), [(1, "1 of 10 workers needs a"), (2, "of 10 workers need a")]
)
def test_the_lead_counts_workers_in_grammar(summary, n, says):
    changed = {
        **summary,
        "workers": {**summary["workers"], "n_flagged": n},
        "verdict": {**summary["verdict"], "n_workers": 10},
    }
    assert says in render(changed)


def test_hostile_text_is_shown_as_text(hostile_html):
    page = Page(hostile_html)
    assert not page.all("img", "b")
    assert len(page.all("script")) == 2
    assert not any(name.startswith("on") for element in page.elements for name in element["attrs"])
    shown = "".join(e["text"] for e in page.all("main"))
    for text in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd()", "🙂"):
        assert text in shown
    assert "{{ 7 * 7 }}" in shown
    assert "49 " not in shown.split("{{ 7 * 7 }}")[0][-5:]
    assert r"a\x00b\x1b[2J" in shown
    assert page.all("title")[0]["text"] == "</title><script>alert(1)</script>"
    assert "'<b>$(reboot)'\"'\"'.csv'" in shown  # quoted for the shell, too


def test_long_ids_are_cut_with_a_tooltip(hostile_html):
    assert "x" * 901 not in hostile_html
    titles = [e["attrs"]["title"] for e in Page(hostile_html).all("bdi") if "title" in e["attrs"]]
    assert any(title.startswith("xxx") and 60 < len(title) <= 300 for title in titles)
    assert len(hostile_html.encode()) < 1_000_000


def test_ids_are_isolated_from_the_direction_of_their_surroundings(hostile_html):
    found = [part for part in re.split(r"<bdi[^>]*>.*?</bdi>", hostile_html) if "\u202e" in part]
    # Outside of bdi only in attributes, tooltips (with marks of their own), data for programs.
    assert "\u2068שלום\u202eevil\u2069:" in hostile_html
    for part in found:
        outside = re.sub(r"<title>.*?</title>|<[^>]*>", "", part.split('id="summary"')[0])
        outside = re.sub(r"\u2068[^\u2069]*\u2069", "", outside)  # names in charts
        assert "\u202e" not in outside


def test_data_for_programs_cannot_end_its_element(hostile_html, hostile_summary):
    data = re.search(r'id="summary">(.*?)</script>', hostile_html, re.DOTALL).group(1)
    found = json.loads(data)
    assert found["title"] == hostile_summary["title"]
    assert [step["id"] for step in found["next"]] == [s["id"] for s in hostile_summary["next"]]
    assert found["verdict"] == hostile_summary["verdict"]
    assert json.loads(embedded_json("\u2028</script>&")) == "\u2028</script>&"


def test_templates_never_turn_escaping_off():
    for template in TEMPLATES.iterdir():
        if template.name.endswith(".jinja"):
            text = template.read_text(encoding="utf-8")
            assert "safe" not in text, template.name
            assert "autoescape" not in text, template.name


def test_without_jinja2_the_error_names_the_extra(summary, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"wisecrowd\[report\]"):
        render(summary)


# ---------------------------------------------------------------------------------------- contrast


def palettes() -> list[dict[str, tuple[float, ...]]]:
    """The colours of light, dark (twice: asked for, and by preference) and print."""
    found = []
    for block in re.findall(r"\{([^{}]*--page:[^{}]*)\}", (TEMPLATES / "style.css").read_text()):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        found.append(
            {n: tuple(int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)) for n, c in colours.items()}
        )
    return found


def luminance(colour: tuple[float, ...]) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_formula():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)


@pytest.mark.parametrize("palette", palettes())
def test_text_can_be_read_on_every_ground(palette):
    for ink in ("text", "muted", "accent", "bad", "warn"):
        for ground in ("page", "panel"):
            assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    darkest = tuple(
        0.45 * h + 0.55 * p for h, p in zip(palette["heat"], palette["page"], strict=True)
    )
    assert contrast(palette["text"], darkest) >= 4.5


def test_both_ways_to_dark_are_the_same():
    light, preferred, chosen, _ = palettes()
    assert preferred == chosen != light
