"""No output of any kind states an accuracy, or its interval, without known answers."""

from __future__ import annotations

import html
import re

import pytest

from wisecrowd.core.kinds import all_kinds

pytest.importorskip("jinja2")

# Words that claim that something is right, and the sentences that say that nothing is claimed.
CLAIM = re.compile(
    r"accura\w*|\bcorrect\b|\bright (?:about|answers|labels|results|spans|words)|\bare right"
    r"|\d ?% right|\d ?% of (?:the|all) (?:labels|results|words) are",
    re.IGNORECASE,
)
ALLOWED = re.compile(
    r"not an estimate of accuracy|no estimate of accuracy|of the labels were right"
    r"|the share right was|which is right",
    re.IGNORECASE,
)
OPTIONS = {"ordered": ["--scale", "0..4"], "labels": []}


def claims(text: str) -> list[str]:
    """Return the places of a text that claim that something is right, with their surroundings."""
    text = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.DOTALL)
    text = ALLOWED.sub("", html.unescape(re.sub(r"<[^>]*>", " ", text)))
    return [text[max(0, m.start() - 60) : m.end() + 60] for m in CLAIM.finditer(text)]


@pytest.fixture(params=list(all_kinds()))
def crowd(request, cli, tmp_path):
    """Return a simulated file of each kind, and how to read it."""
    kind = request.param
    folder = tmp_path / "crowd"
    if kind == "rankings":  # they have no simulator
        folder.mkdir()
        rows = [f"t{n},w{n % 4},{'a > b > c' if n % 3 else 'b > a > c'}" for n in range(24)]
        (folder / "answers.csv").write_text("task,worker,ranking\n" + "\n".join(rows) + "\n")
        return kind, folder / "answers.csv", ["--type", kind]
    arguments = ["--type", kind, "--n-workers", 6]
    if kind == "labels":
        arguments = ["--workers", "6*one-coin:8,2"]
    code, _, errors = cli("simulate", folder, *arguments, "--tasks", 25)
    assert code == 0, errors
    (answers,) = folder.glob("answers.*")
    return kind, answers, OPTIONS.get(kind, ["--type", kind])


@pytest.mark.parametrize("command", ["aggregate", "audit", "report", "compare"])
def test_no_output_without_gold_states_an_accuracy(cli, crowd, command, tmp_path):
    kind, answers, reading = crowd
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    given = {
        "aggregate": ["-o", outputs / "labels.csv", "--workers-to", outputs / "workers.csv"],
        "audit": ["-o", outputs / "audit"],
        "report": ["-o", outputs / "report.html", "--markdown", outputs / "report.md"],
        "compare": ["-o", outputs / "methods.csv"],
    }[command]
    texts = []
    if command == "compare":
        reading = [*reading, "--methods", all_kinds()[kind].default_method]
    for more in (given, ["--json"]):
        code, out, errors = cli(command, answers, *reading, *more)
        if kind == "rankings" and command in ("audit", "report"):
            assert code != 0  # there is none
            return
        assert code == 0, errors
        texts += [out, errors]
    texts += [
        path.read_text()
        for path in outputs.rglob("*")
        if path.suffix in (".csv", ".html", ".md") and path.is_file()
    ]
    assert "\n".join(place for text in texts for place in claims(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "About 98.3% of the labels are right.",
        '{"accuracy": 0.9}',
        "<th>Estimated accuracy</th>",
        "worker,accuracy_low",
        "97 % of the results are fine",
    ],
)
def test_the_search_finds_what_it_is_for(text):
    assert claims(text)
