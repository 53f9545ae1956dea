"""The page about judges: its cards and plots, escaped, self-contained, of stored data."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from tests.truth.judge_crowds import as_classes, as_numbers, judged_crowd

import wisecrowd as wc
from wisecrowd.reporting.judges_page import judges_page, judges_summary, save_judges_page
from wisecrowd.storage import Manifest, read_manifest
from wisecrowd.truth import judges

VOID = {"meta", "input", "link", "br", "line", "rect", "circle", "path"}


class Tree(HTMLParser):
    """Open elements, ids and links of a page; a wrong end is an error."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.loaded = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.loaded += [found["src"]] if "src" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, tag


@pytest.fixture(scope="module")
def rows():
    return judged_crowd(0, n_tasks=60, n_people=3, share=1.0, judges=(0.8, 0.2))[0]


@pytest.fixture(scope="module")
def summary(rows):
    return judges_summary(judges(as_classes(rows), epsilon=0.2), files=["answers.csv"])


def test_the_page_is_sound(summary):
    page = judges_page(summary)
    tree = Tree()
    tree.feed(page)
    assert tree.open == []
    assert len(tree.ids) == len(set(tree.ids))
    assert {link.removeprefix("#") for link in tree.links} <= {*tree.ids}
    assert tree.loaded == []
    assert "://" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)


def test_there_is_one_card_for_each_judge(summary):
    page = judges_page(summary)
    cards = re.findall(r'<li class="card ?\w*">.*?</li>', page, re.S)
    assert len(cards) == 2
    for card, judge, text in zip(cards, ("model0", "model1"), summary["verdicts"], strict=True):
        assert f"<bdi>{judge}</bdi>" in card
        assert text in card
    assert "People beaten" in cards[0]
    assert "3 of 3" in cards[0]


def test_plots_show_the_figures_of_the_tables(summary):
    page = judges_page(summary)
    one = summary["tables"]["judges"][0]
    assert f"⁨model0⁩: {one['score']:.0%}".replace("%", " %") in page
    assert f"people {one['ceiling']:.0%}".replace("%", " %") in page
    phi = summary["tables"]["judge_pairs"][0]["phi"]
    matrix = re.search(r'<table class="matrix">.*?</table>', page, re.S)[0]
    assert matrix.count(f"{phi:.2f}") == 2
    assert "2 judges are worth " in page


def test_sections_follow_the_kind(rows, summary):
    assert 'id="judge_classes"' in judges_page(summary)
    numbers = judges_page(judges_summary(judges(as_numbers(rows), epsilon=0.2)))
    assert 'id="judge_leniency"' in numbers
    assert 'id="judge_classes"' not in numbers
    assert "judge minus mean of people" in numbers
    assert "mean distance from the other people" in numbers


def test_sections_without_people_or_other_judges(rows):
    some = [row for row in rows if row[1] in ("human0", "model0")]
    page = judges_page(judges_summary(judges(as_classes(some))))
    assert "Not tested" in page
    assert "Nobody can be compared" in page
    assert "There is one judge only." in page


def test_exchanged_sides_have_a_section():
    rows = [(f"t{n}", f"p{k}", 0, "human") for n in range(40) for k in range(3)]
    rows += [(f"t{n}", "gpt", n % 2, "model") for n in range(40)]
    rows += [(f"t{n}", "turned", 0, "model") for n in range(40)]
    page = judges_page(judges_summary(judges(as_classes(rows), swap={"gpt": "turned"})))
    assert 'id="judge_sides"' in page
    assert "Consistent in both orders" in page


def test_names_are_escaped(rows):
    evil = "<script>alert(1)</script>"
    renamed = [(task, who.replace("model0", evil), *rest) for task, who, *rest in rows]
    page = judges_page(judges_summary(judges(as_classes(renamed)), title=evil))
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_page_can_be_made_of_stored_data(summary):
    assert judges_page(json.loads(json.dumps(summary))) == judges_page(summary)


def test_it_is_written_with_its_manifest(summary, tmp_path):
    path = tmp_path / "judges.html"
    save_judges_page(summary, path, Manifest.describe(method="judges"))
    assert path.read_text(encoding="utf-8") == judges_page(summary)
    assert read_manifest(path).method == "judges"


def test_many_judges_have_no_matrix():
    rows = [(f"t{n}", f"p{k}", (n + k) % 2, "human") for n in range(12) for k in range(2)]
    rows += [(f"t{n}", f"j{k}", (n * k) % 2, "model") for n in range(12) for k in range(14)]
    labels = as_classes(rows)
    assert isinstance(labels, wc.CrowdLabels)
    page = judges_page(judges_summary(judges(labels)))
    assert '<table class="matrix">' not in page
    assert "Differences between judges" in page
