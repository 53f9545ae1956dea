from __future__ import annotations

import errno
import os
import stat
import sys

import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.storage import atomic
from wisecrowd.storage.atomic import (
    atomic_directory,
    atomic_write,
    clear_write_errors,
    together,
    when_complete,
    written_at,
)


def entries(folder):
    return sorted(entry.name for entry in folder.iterdir())


def own(entry):
    return entry.suffix == ".npy"


def failing(number):
    def fail(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    return fail


class TestAtomicWrite:
    def test_text_is_utf8_with_line_ends_as_given(self, tmp_path):
        path = tmp_path / "labels.csv"
        with atomic_write(path) as file:
            file.write("täsk\r\n1\n")
        assert path.read_bytes() == "täsk\r\n1\n".encode()
        assert entries(tmp_path) == ["labels.csv"]

    def test_bytes(self, tmp_path):
        with atomic_write(str(tmp_path / "a"), "wb") as file:
            file.write(b"\x00\xff")
        assert (tmp_path / "a").read_bytes() == b"\x00\xff"

    def test_replaces_only_at_the_end(self, tmp_path):
        path = tmp_path / "labels.csv"
        path.write_text("old")
        with atomic_write(path) as file:
            file.write("new")
            file.flush()
            assert path.read_text() == "old"
        assert path.read_text() == "new"

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
    def test_an_error_in_the_middle_leaves_the_old_file(self, tmp_path, error):
        path = tmp_path / "labels.csv"
        path.write_text("old")

        def write_half():
            with atomic_write(path) as file:
                file.write("half")
                raise error

        with pytest.raises(error):
            write_half()
        assert path.read_text() == "old"
        assert entries(tmp_path) == ["labels.csv"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "broken")])
    def test_a_failing_rename_leaves_the_old_file(self, tmp_path, monkeypatch, error):
        path = tmp_path / "labels.csv"
        path.write_text("old")

        def fail(*_):
            raise error

        monkeypatch.setattr(os, "replace", fail)
        with (
            pytest.raises(KeyboardInterrupt if type(error) is KeyboardInterrupt else DataError),
            atomic_write(path) as file,
        ):
            file.write("new")
        assert path.read_text() == "old"
        assert entries(tmp_path) == ["labels.csv"]

    @pytest.mark.parametrize("mode", ["w", "wb"])
    def test_a_file_over_the_size_limit(self, tmp_path, small_file_limit, mode):
        path = tmp_path / "labels.csv"
        path.write_text("old")
        piece = "x" * 100_000 if mode == "w" else b"x" * 100_000
        with (
            pytest.raises(DataError, match="larger than a file may be"),
            atomic_write(path, mode) as f,
        ):
            f.write(piece)
        assert path.read_text() == "old"
        assert entries(tmp_path) == ["labels.csv"]

    def test_what_stays_in_the_buffer_until_the_end_can_fail_too(self, tmp_path, monkeypatch):
        path = tmp_path / "labels.csv"
        monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
        with pytest.raises(DataError, match="the disk is full"), atomic_write(path) as file:
            file.write("x")
        assert entries(tmp_path) == []

    def test_a_pipe_is_written_not_replaced(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            with atomic_write(pipe) as file:
                file.write("x")
            assert os.read(reader, 10) == b"x"
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert entries(tmp_path) == ["pipe"]

    def test_missing_directory(self, tmp_path):
        with (
            pytest.raises(DataError, match=r"nowhere does not exist; create it first\.$"),
            atomic_write(tmp_path / "nowhere" / "a.csv"),
        ):
            pass

    def test_parent_is_a_file(self, tmp_path):
        (tmp_path / "file").touch()
        with (
            pytest.raises(DataError, match="file is not a directory"),
            atomic_write(tmp_path / "file" / "a.csv"),
        ):
            pass

    def test_a_directory_of_that_name(self, tmp_path):
        with pytest.raises(DataError, match="it is a directory"), atomic_write(tmp_path):
            pass
        assert entries(tmp_path) == []

    def test_no_permission(self, tmp_path, monkeypatch):
        # Mode bits do not stop a superuser, so the refusal itself is put in place.
        monkeypatch.setattr("pathlib.Path.open", failing(errno.EACCES))
        with (
            pytest.raises(DataError, match="no permission to write in"),
            atomic_write(tmp_path / "a"),
        ):
            pass

    def test_the_callers_own_read_error_is_not_called_a_write_error(self, tmp_path):
        with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a"):
            (tmp_path / "not there").read_text()
        assert entries(tmp_path) == []

    def test_permissions_are_those_of_a_fresh_file(self, tmp_path):
        with atomic_write(tmp_path / "atomic"):
            pass
        (tmp_path / "plain").touch()
        assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        with atomic_write(tmp_path / "link") as file:
            file.write("new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == "new"

    def test_the_longest_name(self, tmp_path):
        with atomic_write(tmp_path / ("a" * 255)) as file:
            file.write("x")
        assert entries(tmp_path) == ["a" * 255]

    def test_a_writer_may_close_the_file_itself(self, tmp_path):
        with atomic_write(tmp_path / "a") as file:
            file.write("x")
            file.close()
        assert (tmp_path / "a").read_text() == "x"

    def test_unknown_mode(self, tmp_path):
        with pytest.raises(ParameterError, match="mode must be"):
            atomic_write(tmp_path / "a", "a")


class TestAtomicDirectory:
    def test_appears_at_the_end(self, tmp_path):
        target = tmp_path / "model"
        with atomic_directory(target, is_own_entry=own) as folder:
            (folder / "a.npy").write_text("new")
            assert not target.exists()
        assert entries(tmp_path) == ["model"]
        assert entries(target) == ["a.npy"]

    def test_replaces_its_own_kind(self, tmp_path):
        target = tmp_path / "model"
        target.mkdir()
        (target / "old.npy").touch()
        with atomic_directory(target, is_own_entry=own) as folder:
            (folder / "new.npy").touch()
        assert entries(target) == ["new.npy"]
        assert entries(tmp_path) == ["model"]

    def test_never_deletes_foreign_files(self, tmp_path):
        target = tmp_path / "documents"
        target.mkdir()
        (target / "thesis.tex").touch()
        with (
            pytest.raises(DataError, match=r"holds thesis\.tex, which would be lost"),
            atomic_directory(target, is_own_entry=own),
        ):
            pass
        assert entries(target) == ["thesis.tex"]

    def test_a_file_of_that_name(self, tmp_path):
        (tmp_path / "model").write_text("old")
        with (
            pytest.raises(DataError, match="there is a file of that name"),
            atomic_directory(tmp_path / "model", is_own_entry=own),
        ):
            pass
        assert (tmp_path / "model").read_text() == "old"

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
    def test_an_error_in_the_middle_leaves_the_old_directory(self, tmp_path, error):
        target = tmp_path / "model"
        target.mkdir()
        (target / "old.npy").touch()

        def write_half():
            with atomic_directory(target, is_own_entry=own) as folder:
                (folder / "new.npy").touch()
                raise error

        with pytest.raises(error):
            write_half()
        assert entries(target) == ["old.npy"]
        assert entries(tmp_path) == ["model"]

    @pytest.mark.parametrize("failing_call", [1, 2])
    def test_a_failing_rename_brings_the_old_directory_back(
        self, tmp_path, monkeypatch, failing_call
    ):
        target = tmp_path / "model"
        target.mkdir()
        (target / "old.npy").touch()
        monkeypatch.setattr(atomic, "exchange", lambda *_: False)  # as on other systems
        replace, calls = os.replace, []

        def fail_once(*args):
            calls.append(args)
            if len(calls) == failing_call:
                raise KeyboardInterrupt
            replace(*args)

        monkeypatch.setattr(os, "replace", fail_once)
        with (
            pytest.raises(KeyboardInterrupt),
            atomic_directory(target, is_own_entry=own) as folder,
        ):
            (folder / "new.npy").touch()
        assert entries(target) == ["old.npy"]
        assert entries(tmp_path) == ["model"]

    def test_missing_parent(self, tmp_path):
        with (
            pytest.raises(DataError, match="does not exist; create it first"),
            atomic_directory(tmp_path / "nowhere" / "model", is_own_entry=own),
        ):
            pass


class TestTogether:
    def test_nothing_appears_before_all_is_complete(self, tmp_path):
        (tmp_path / "a").write_text("old")
        said = []
        with together():
            with atomic_write(tmp_path / "a") as file:
                file.write("new")
            with atomic_directory(tmp_path / "model", is_own_entry=own) as folder:
                with atomic_write(folder / "x.npy") as file:
                    file.write("inside")
                assert entries(folder) == ["x.npy"]
            when_complete(lambda: said.append((tmp_path / "a").read_text()))
            assert (tmp_path / "a").read_text() == "old"
            assert written_at(tmp_path / "a").read_text() == "new"
            assert entries(written_at(tmp_path / "model")) == ["x.npy"]
            assert not (tmp_path / "model").exists()
        assert said == ["new"]
        assert entries(tmp_path) == ["a", "model"]
        assert entries(tmp_path / "model") == ["x.npy"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_an_error_in_the_last_leaves_all_as_they_were(self, tmp_path, error):
        (tmp_path / "a").write_text("old")

        def write_two():
            with together():
                with atomic_write(tmp_path / "a") as file:
                    file.write("new")
                with atomic_directory(tmp_path / "model", is_own_entry=own):
                    pass
                with atomic_write(tmp_path / "b"):
                    raise error

        with pytest.raises(error):
            write_two()
        assert (tmp_path / "a").read_text() == "old"
        assert entries(tmp_path) == ["a"]

    def test_a_failing_rename_removes_what_waits(self, tmp_path, monkeypatch):
        def write_two():
            with together():
                for name in "ab":
                    with atomic_write(tmp_path / name) as file:
                        file.write("new")

        monkeypatch.setattr(os, "replace", failing(errno.EIO))
        with pytest.raises(DataError, match=r"Cannot write .*a: "):
            write_two()
        assert entries(tmp_path) == []

    def test_the_outermost_set_counts(self, tmp_path):
        with together():
            with together(), atomic_write(tmp_path / "a") as file:
                file.write("new")
            assert not (tmp_path / "a").exists()
        assert (tmp_path / "a").read_text() == "new"

    def test_without_a_set_things_happen_at_once(self, tmp_path):
        said = []
        when_complete(lambda: said.append(1))
        assert said == [1]
        assert written_at(tmp_path / "a") == (tmp_path / "a").resolve()


@pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged in one step on Linux")
def test_there_is_no_moment_without_the_directory(tmp_path, monkeypatch):
    """A directory in the way is exchanged: two renames would leave a gap for a crash."""
    target = tmp_path / "model"
    target.mkdir()
    (target / "old.npy").touch()
    monkeypatch.setattr(os, "replace", failing(errno.EIO))
    with atomic_directory(target, is_own_entry=own) as folder:
        (folder / "new.npy").touch()
    assert entries(target) == ["new.npy"]
    assert entries(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EPERM, "no permission"),
        (errno.ENAMETOOLONG, "File name too long"),
    ],
)
def test_every_error_is_one_sentence_that_names_the_file(number, message):
    with (
        pytest.raises(DataError, match=rf"^Cannot write out/a\.csv: .*{message}.*\.$"),
        clear_write_errors("out/a.csv"),
    ):
        failing(number)()


def test_a_short_write_without_a_number():
    with pytest.raises(DataError, match="disk is probably full"), clear_write_errors("a.npy"):
        raise OSError("100 requested and 3 written")
