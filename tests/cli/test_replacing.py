"""What outputs replace: what wisecrowd wrote; anything else with ``--overwrite`` only."""

from __future__ import annotations

import json

import pytest

from wisecrowd.storage.manifest import manifest_path

FIT = ("aggregate", "-m", "majority-vote")


def test_the_same_command_again_replaces_its_output_and_says_so(cli, answers, tmp_path):
    target = tmp_path / "labels.csv"
    first, again = (cli(*FIT, answers, "-o", target) for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert "replaces" not in first.err
    assert f"wrote {target} (5 rows); it replaces its earlier version" in again.err


def test_another_command_replaces_it_too(cli, answers, tmp_path):
    target = tmp_path / "labels.csv"
    assert cli(*FIT, answers, "-o", target).code == 0
    assert cli("convert", answers, target).code == 0


def test_a_file_of_the_user_is_refused_before_any_work(cli, answers, tmp_path, written):
    target = tmp_path / "labels.csv"
    target.write_text("mine")
    code, out, err = cli(*FIT, answers, "-o", target)
    assert (code, out) == (2, "")
    assert err == (
        f"wisecrowd: {target} exists and was not written by wisecrowd; give the output another "
        "name, or add --overwrite to replace it.\n"
    )
    assert target.read_text() == "mine"
    assert written(answers) == {"labels.csv"}
    code, _, err = cli(*FIT, answers, "-o", target, "--overwrite")
    assert code == 0
    assert "; it replaces one that wisecrowd did not write" in err
    assert target.read_text().startswith("task,label")


def test_an_output_that_was_changed_is_not_replaced(cli, answers, tmp_path):
    target = tmp_path / "labels.csv"
    cli(*FIT, answers, "-o", target)
    target.write_text(target.read_text() + "t9,mine,1,False,1\n")
    code, _, err = cli(*FIT, answers, "-o", target)
    assert code == 2
    assert "is not as its manifest says" in err
    assert "mine" in target.read_text()
    assert cli(*FIT, answers, "-o", target, "--overwrite").code == 0


@pytest.mark.parametrize("content", ["mine", "{}", json.dumps({"output_sha256": "0"})])
def test_a_file_with_the_name_of_a_manifest(cli, answers, tmp_path, content):
    target = tmp_path / "labels.csv"
    manifest_path(target).write_text(content)
    code, _, err = cli(*FIT, answers, "-o", target)
    assert code == 2
    assert "is not a manifest of wisecrowd" in err
    assert manifest_path(target).read_text() == content
    assert not target.exists()


def test_a_manifest_whose_output_is_gone_is_replaced(cli, answers, tmp_path):
    target = tmp_path / "labels.csv"
    cli(*FIT, answers, "-o", target)
    target.unlink()
    assert cli(*FIT, answers, "-o", target).code == 0


def test_an_input_is_refused_also_with_overwrite(cli, answers, tmp_path):
    before = answers.read_text()
    for option in ("-o", "--workers-to"):
        code, _, err = cli(*FIT, answers, option, answers, "--overwrite")
        assert (code, "would overwrite" in err) == (2, True)
    (tmp_path / "seen.csv").write_text("task,worker\n1,a\n")
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("task,worker,x,y,width,height\n1,a,0,0,9,9\n1,b,0,0,9,9\n")
    given = ("aggregate", boxes, "--type", "boxes", "--seen", tmp_path / "seen.csv", "--overwrite")
    code, _, err = cli(*given, "--assignments-to", tmp_path / "seen.csv")
    assert (code, "would overwrite" in err) == (2, True)
    assert answers.read_text() == before


def test_a_model_is_replaced_and_a_folder_of_arrays_is_not(cli, answers, tmp_path):
    model, arrays = tmp_path / "model", tmp_path / "arrays"
    for _ in range(2):
        assert cli(*FIT, answers, "--save", model).code == 0
    (tmp_path / "model.manifest.json").unlink()  # as saved by Python
    assert cli(*FIT, answers, "--save", model).code == 0
    (model / "mine.npy").write_bytes(b"mine")
    arrays.mkdir()
    (arrays / "mine.npy").write_bytes(b"mine")
    for folder in (model, arrays):
        code, _, err = cli(*FIT, answers, "--save", folder, "--overwrite")
        assert code == 3
        assert "the directory holds mine.npy, which would be lost" in err
        assert (folder / "mine.npy").read_bytes() == b"mine"


def test_the_former_names_of_outputs(cli, answers, tmp_path):
    workers = tmp_path / "w.csv"
    assert cli(*FIT, answers, "--workers", workers).code == 0
    assert cli(*FIT, answers, f"--workers={workers}").code == 0
    manifest = json.loads(manifest_path(workers).read_text())
    assert manifest["command"][-1] == f"--workers-to={workers}"
    code, _, err = cli(*FIT, answers, "--workers", workers, "--overwrite")
    assert code == 2
    assert "--workers is an output and is called --workers-to" in err
    assert "--workers " not in cli("aggregate", "--help").out


def test_a_log_and_a_markdown_page_are_recognised(cli, answers, tmp_path):
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    given = ("report", answers, "-m", "majority-vote", "-o", page, "--markdown", text, "-q")
    assert [cli(*given).code for _ in range(2)] == [0, 0]
    text.write_text(text.read_text() + "mine")
    assert cli(*given).code == 2
    assert text.read_text().endswith("mine")


@pytest.mark.parametrize("place", [".", "..", "./", "/", "{here}"])
def test_the_current_folder_is_no_output(cli, answers, tmp_path, monkeypatch, place):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folder = place.format(here=here)
    for command in (["simulate", folder], ["audit", answers, "-o", folder],
                    [*FIT, answers, "--save", folder]):  # fmt: skip
        code, _, err = cli(*command)
        assert code == 2
        assert err == (
            f"wisecrowd: {folder} is the current folder, or holds it; give another name.\n"
        )
    assert not list(here.iterdir())
