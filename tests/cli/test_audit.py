from __future__ import annotations

import json

import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.audit import audit_crowd, prune
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.storage import read_manifest

HEADER = ["task", "worker", "label"]


@pytest.fixture(scope="module")
def crowd():
    population = 6 * simulate.OneCoinWorkers(9, 1) + 2 * simulate.Spammers()
    return simulate.crowd(200, population, n_classes=3, random_state=4)


@pytest.fixture
def spoiled(crowd, table):
    columns = crowd.labels.to_dict()
    rows = zip(*(columns[name].tolist() for name in HEADER), strict=True)
    return table("spoiled.csv", HEADER, rows)


@pytest.fixture
def clean(table):
    rows = [(i, w, i % 2) for i in range(60) for w in "abcd"]
    return table("clean.csv", HEADER, rows)


def test_prints_the_findings(cli, spoiled):
    code, out, err = cli("audit", spoiled, "--part", "spammers")
    with shell_spelling():
        found = audit_crowd(wc.read(spoiled), parts=["spammers"]).findings
    assert code == 0, err
    assert out.splitlines()[0].split()[:2] == [found[0].severity, "spammers"]
    assert found[0].explanation in out
    assert found[0].remedy in out


def test_nothing_found(cli, clean):
    assert cli("audit", clean, "--part", "spammers", "-q") == (0, "nothing found\n", "")


def test_json_is_the_whole_audit(cli, spoiled):
    code, out, err = cli("audit", spoiled, "--json", "--part", "spammers", "--seed", 3)
    assert code == 0, err
    found = json.loads(out)
    with shell_spelling():
        expected = audit_crowd(wc.read(spoiled), parts=["spammers"], random_state=3).to_dict()
    notes = found.pop("notes")
    assert isinstance(notes, list)
    assert found == json.loads(json.dumps(expected))


@pytest.mark.parametrize(("severity", "code"), [("high", 0), ("medium", 1), ("low", 1), (None, 0)])
def test_fail_on(cli, spoiled, severity, code):
    options = [] if severity is None else ["--fail-on", severity]
    found = cli("audit", spoiled, "--part", "spammers", *options)
    assert found.code == code
    assert found.out.startswith("medium")  # a hundred labels do not show that they know nothing


def test_fail_on_passes_what_is_clean(cli, clean):
    assert cli("audit", clean, "--part", "spammers", "--fail-on", "info").code == 0


def test_folder_with_all_tables(cli, spoiled, tmp_path, rows):
    folder = tmp_path / "audit"
    code, _, err = cli("audit", spoiled, "-o", folder)
    assert code == 0, err
    audit = audit_crowd(wc.read(spoiled))
    assert {f.name for f in folder.iterdir()} == {
        f"{name}.csv" for name in ("findings", *audit.tables())
    }
    written = rows(folder / "findings.csv")
    assert [row["id"] for row in written] == [found.id for found in audit.findings]
    assert json.loads(written[0]["affected"]) == list(audit.findings[0].affected)
    accused = [row["worker"] for row in rows(folder / "spammers.csv") if row["spammer"] == "true"]
    assert accused == audit["spammers"].workers[audit["spammers"].spammer].tolist()
    assert set(read_manifest(folder).inputs) == {str(spoiled)}
    assert cli("audit", spoiled, "-o", folder).code == 0  # its own folder may be replaced


def test_foreign_folder_is_left_alone(cli, spoiled, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("")
    code, out, _ = cli("audit", spoiled, "-o", tmp_path / "photos")
    assert (code, out) == (3, "")
    assert (tmp_path / "photos" / "cat.jpg").exists()


def test_prune_to(cli, spoiled, tmp_path):
    target = tmp_path / "cleaned.csv"
    code, out, err = cli("audit", spoiled, "--part", "spammers", "--prune-to", target, "--json")
    assert code == 0, err
    expected = prune(wc.read(spoiled))
    cleaned = wc.read(target)
    assert cleaned.workers.tolist() == expected.labels.workers.tolist()
    assert cleaned.n_annotations == expected.labels.n_annotations
    document = json.loads(out)["pruned"]
    assert document["removed"] == ["6", "7"]
    assert document["workers_removed"] == 2
    assert f"pruned 2 workers and {document['labels_removed']} labels" in err
    assert read_manifest(target).method == "audit"


def test_prune_to_standard_output_prints_labels_only(cli, spoiled, rows):
    code, out, _ = cli("audit", spoiled, "--part", "identifiability", "--prune-to", "-", "-q")
    assert code == 0
    assert {row["worker"] for row in rows(out)} == {str(j) for j in range(6)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fail-on", "bad"], "--fail-on is 'bad'; choose one of info, low, medium, high"),
        (["--part", "spamers"], "did you mean 'spammers'"),
        (["--unlabelled", "x"], "--unlabelled is 'x'; choose one of refuse, spare, drop"),
    ],
)
def test_wrong_options(cli, clean, options, message):
    code, out, err = cli("audit", clean, *options)
    assert (code, out) == (2, "")
    assert message in err


def test_input_is_not_overwritten(cli, spoiled):
    before = spoiled.read_bytes()
    assert cli("audit", spoiled, "--prune-to", spoiled).code == 2
    assert spoiled.read_bytes() == before


def test_what_cannot_be_pruned(cli, table):
    lonely = table("l.csv", HEADER, [("t", "w", "a"), ("u", "v", "b")])
    code, _, err = cli("audit", lonely, "--prune-to", lonely.with_name("x.csv"))
    assert code == 3
    assert "no two workers share two tasks. Leave out --prune-to" in err


def test_gold_reaches_the_audit(cli, spoiled, crowd, table):
    truth = zip(crowd.labels.tasks.tolist(), crowd.truth.tolist(), strict=True)
    gold = table("gold.csv", ["task", "label"], list(truth)[:50])
    code, out, err = cli("audit", spoiled, "--gold", gold, "--json")
    assert code == 0, err
    assert json.loads(out)["n_tasks"] == 200


@pytest.fixture
def copied(table):
    workers = 9 * simulate.OneCoinWorkers(8, 3) + 1 * simulate.Spammers()
    workers = workers + 5 * simulate.Copiers(sources=9)
    made = simulate.crowd(300, workers, simulate.Dense(), random_state=1)
    columns = made.labels.to_dict()
    rows = zip(*(columns[name].tolist() for name in HEADER), strict=True)
    return table("copied.csv", HEADER, rows), made


def test_the_most_surprising_pairs_are_shown_if_any_is_accused(cli, table, copied, tmp_path):
    answers, _ = copied
    code, out, err = cli("audit", answers, "--part", "clones", "-o", tmp_path / "found")
    assert code == 0, err
    shown = out[out.index("most surprising agreement") :].splitlines()[1:]
    assert len(shown) == 10
    assert all("300 of 300 labels equal" in line and "accused" in line for line in shown)
    written = (tmp_path / "found" / "surprising_pairs.csv").read_text().splitlines()
    assert len(written) == 11
    made = simulate.crowd(200, 6 * simulate.OneCoinWorkers(8, 3), simulate.Dense())
    columns = made.labels.to_dict()
    rows = zip(*(columns[name].tolist() for name in HEADER), strict=True)
    _, out, _ = cli("audit", table("honest.csv", HEADER, rows), "--part", "groups")
    assert out == "nothing found\n"


def test_the_command_that_a_fit_suggests_counts_copies_once(cli, copied, tmp_path):
    answers, made = copied
    _, _, err = cli("aggregate", answers)
    suggested = "wisecrowd audit FILE --prune clones --prune-to CLEAN.csv."
    assert suggested in err
    target = tmp_path / "clean.csv"
    code, out, err = cli(
        "audit", answers, "--part", "clones", "--prune", "clones", "--prune-to", target
    )
    assert code == 0, err
    assert "give equal labels on 100%" in " ".join(out.split())
    cleaned = wc.read(target)
    assert cleaned.workers.astype(int).tolist() == list(range(10))
    fitted = wc.aggregation.DawidSkene().fit(cleaned)
    truth = made.truth[fitted.tasks_.astype(int)]
    assert (fitted.labels_.astype(int) == truth).mean() > 0.9
    assert fitted.warnings_ == ()
    assert read_manifest(target).parameters["prune"] == ["clones"]


def test_what_to_prune_needs_a_file_and_a_known_kind(cli, spoiled, tmp_path):
    code, _, err = cli("audit", spoiled, "--prune", "clones")
    assert code == 2
    assert "--prune-to FILE" in err
    code, _, err = cli("audit", spoiled, "--prune", "cloans", "--prune-to", tmp_path / "x.csv")
    assert code == 2
    assert "clones" in err
