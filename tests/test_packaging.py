"""The release checklist sees what is wrong, and the files it needs are in the tree."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Return the module of the checklist, with a tree of its own that is ready for a release."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "release", module)
    spec.loader.exec_module(module)
    tree = tmp_path / "tree"
    (tree / "src/wisecrowd").mkdir(parents=True)
    shutil.copy(ROOT / "src/wisecrowd/_version.py", tree / "src/wisecrowd")
    shutil.copy(ROOT / "CITATION.cff", tree)
    own = module.version()
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{own}] 2030-01-01\n\n## [0.0.1]\n")
    templates = "src/wisecrowd/reporting/templates"
    shutil.copytree(ROOT / templates, tree / templates)
    monkeypatch.setattr(module, "ROOT", tree)
    return module


def make_files(module, folder, *, without=(), extra=()):
    """Write a wheel and an sdist with the names that the checklist wants."""
    built, own = folder / "dist", f"wisecrowd-{module.version()}"
    built.mkdir()
    templates = [
        f"wisecrowd/reporting/templates/{path.name}"
        for path in (ROOT / "src/wisecrowd/reporting/templates").iterdir()
    ]
    names = {*module.NEEDED, *templates, f"{own}.dist-info/licenses/LICENSE", *extra}
    with zipfile.ZipFile(built / f"{own}-py3-none-any.whl", "w") as wheel:
        for name in sorted(names - set(without)):
            wheel.writestr(name, "")
    with tarfile.open(built / f"{own}.tar.gz", "w:gz") as sources:
        for name in module.NEEDED_SOURCES:
            sources.add(ROOT / name, f"{own}/{name}")


def test_the_version_is_the_one_of_citation_and_changelog(release):
    assert release.Release(Path(), []).one_version() == release.version()


@pytest.mark.parametrize("file", ["CHANGELOG.md", "CITATION.cff"])
def test_another_version_in_a_file_is_a_failure(release, file):
    path = release.ROOT / file
    path.write_text(path.read_text().replace(release.version(), "9.9.9"))
    with pytest.raises(release.StepError, match=file):
        release.Release(Path(), []).one_version()


def test_a_complete_wheel_passes_and_others_are_refused_with_the_file(release, tmp_path):
    for number, (options, expected) in enumerate(
        [
            ({}, None),
            ({"without": ["wisecrowd/py.typed"]}, "lacks wisecrowd/py.typed"),
            ({"without": ["wisecrowd/reporting/templates/workers.html.jinja"]}, "lacks workers"),
            ({"extra": ["tests/test_api.py"]}, "holds tests/test_api.py"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        make_files(release, folder, **options)
        made = release.Release(folder, [])
        if expected is None:
            assert "files in the wheel" in made.contents()
        else:
            with pytest.raises(release.StepError, match=expected):
                made.contents()


def test_every_failed_step_is_printed_and_counts(release, monkeypatch, capsys):
    def steps(self, at_release):
        def fine():
            """Do something."""
            return "done"

        def wrong():
            """Do something else."""
            raise release.StepError("no")

        return [fine, wrong] if at_release else [fine]

    monkeypatch.setattr(release.Release, "steps", steps)
    assert release.main([]) == 1
    assert "FAIL  Do something else." in capsys.readouterr().out


def test_what_the_wheel_needs_is_in_the_package(release):
    for name in release.NEEDED:
        assert (ROOT / "src" / name).exists(), name
