"""Folders of unfinished work, and lists of unfinished outputs: only what is ours is removed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.settings import current_settings
from wisecrowd.storage.atomic import atomic_write
from wisecrowd.storage.work_folder import (
    MARK,
    WorkFolder,
    clear_files,
    listed_temporaries,
    only_writer,
)

OWN = re.compile(r"passes/pass-\d+")


def test_it_is_removed_with_the_folders_that_were_made_for_it(tmp_path):
    place = tmp_path / "new" / "er" / "a.scratch"
    for _ in range(2):
        work = WorkFolder(place, OWN)
        (place / "passes").mkdir(exist_ok=True)
        (place / "passes" / "pass-1").write_text("1")
    work.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "empty").mkdir()
    WorkFolder(tmp_path / "empty", OWN).remove()
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("mark", ["", "{", '{"format": "wisecrowd-work-1", "made": ["/'])
def test_a_mark_that_a_kill_cut_off_is_written_again(tmp_path, mark):
    (tmp_path / MARK).write_text(mark)
    WorkFolder(tmp_path, OWN)
    WorkFolder(tmp_path, OWN).remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mark", [None, "mine", "[]", '{"format": "other"}'])
def test_a_folder_without_our_mark_is_refused(tmp_path, mark):
    (tmp_path / "thesis.txt").write_text("mine")
    if mark is not None:
        (tmp_path / MARK).write_text(mark)
    with pytest.raises(DataError, match=r"was not made by wisecrowd.*; move it away, or"):
        WorkFolder(tmp_path, OWN)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "a.scratch").write_text("mine")
    with pytest.raises(DataError, match="is in the way"):
        WorkFolder(tmp_path / "a.scratch", OWN)


def test_only_own_files_go_and_links_are_not_followed(tmp_path):
    work, other = WorkFolder(tmp_path / "w", OWN), tmp_path / "other"
    for name in ("w/passes/pass-1", "w/passes/thesis.txt", "other/pass-1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "w" / "linked").symlink_to(other)
    clear_files(tmp_path / "w", re.compile(r"(passes|linked)/pass-\d+"))
    assert not (tmp_path / "w/passes/pass-1").exists()
    assert (tmp_path / "w/passes/thesis.txt").exists()
    assert (other / "pass-1").exists()
    work.remove()
    assert (tmp_path / "w/passes/thesis.txt").exists()


# ----------------------------------------------------------------------------------------- lists


def killed(folder, target):
    """Begin an output inside a list and leave both as a kill does; return its temporary name."""
    with listed_temporaries(folder / "list"), atomic_write(target):
        text = (folder / "list").read_text()
    target.unlink()
    left = Path(text.splitlines()[1])
    (folder / "list").write_text(text)
    left.write_text("half")
    return left


def test_what_a_killed_run_listed_is_removed_and_nothing_else(tmp_path):
    left = killed(tmp_path, tmp_path / "a.csv")
    lookalike = tmp_path / ".wisecrowd-0123456789abcdef.tmp"
    lookalike.write_text("mine")
    assert left.exists()
    with listed_temporaries(tmp_path / "list"):
        assert not left.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == [lookalike.name]


def test_names_that_no_output_has_are_left_alone(tmp_path):
    precious = tmp_path / "precious.tmp"
    precious.write_text("mine")
    killed(tmp_path, tmp_path / "a.csv").unlink()
    with (tmp_path / "list").open("a") as file:
        file.write(f"{precious}\n{tmp_path}\n\0\n\n.wisecrowd-0123456789abcdef.tmp\n")
    with listed_temporaries(tmp_path / "list"):
        pass
    assert precious.exists()


@pytest.mark.parametrize("content", [b"mine", b"# Unfinished\n", b"\xff"])
def test_a_file_that_is_not_a_list_is_refused(tmp_path, content):
    (tmp_path / "list").write_bytes(content)
    with pytest.raises(DataError, match="is in the way"), listed_temporaries(tmp_path / "list"):
        pass
    assert (tmp_path / "list").read_bytes() == content


def test_the_outermost_list_counts(tmp_path):
    with listed_temporaries(tmp_path / "outer"):
        noted = current_settings().temporaries
        with listed_temporaries(tmp_path / "inner"), atomic_write(tmp_path / "a.csv"):
            assert current_settings().temporaries is noted
            assert not (tmp_path / "inner").exists()
            assert (tmp_path / "outer").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def test_a_second_writer_is_refused_and_nothing_is_left(tmp_path):
    place = tmp_path / "crowd.pack"
    with only_writer(place):
        with pytest.raises(DataError, match="Another run writes"), only_writer(place):
            pass
        with only_writer(tmp_path / "other.pack"):
            pass
    with pytest.raises(ValueError, match="inside"), only_writer(place):
        raise ValueError("inside")
    with only_writer(place):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_root_of_the_file_system_is_no_place():
    with pytest.raises(DataError, match="is the root of the file system"), only_writer(Path("/")):
        pass
