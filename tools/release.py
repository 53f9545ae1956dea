"""The release checklist: each step is run, and printed with "pass" or "FAIL" and the reason.

    python tools/release.py [--wheel] [TEST ...]

``--wheel`` leaves out the steps that only hold at a release: a clean tree and a version of its own
in the changelog. ``TEST`` are the tests to run on the installed wheel; without any, a few quick
ones. Everything happens in a temporary folder, and ``dist/`` gets the files if all steps pass.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUICK = ["tests/test_api.py", "tests/metrics", "tests/storage"]
NEEDED = (  # in the wheel: what is not Python, and what is easily forgotten
    "wisecrowd/py.typed",
    "wisecrowd/acquire/live_page.html",
    "wisecrowd/datasets/anaesthetists.csv",
    "wisecrowd/reporting/templates/page.html.jinja",
    "wisecrowd/reporting/templates/style.css",
    "wisecrowd/reporting/templates/script.js",
)
NEEDED_SOURCES = ("tests/conftest.py", "examples/demo.py", "docs/index.md", "Makefile", "LICENSE")
METADATA = """
import sys, zipfile
from packaging.metadata import Metadata
with zipfile.ZipFile(sys.argv[1]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    found = Metadata.from_email(wheel.read(name), validate=True)
missing = [field for field in ("summary", "description", "license_expression", "requires_python")
           if not getattr(found, field)]
if missing or found.description_content_type != "text/markdown":
    sys.exit(f"The metadata lack {missing or 'the type of the description'}.")
print(found.name, found.version, "with the extras", ", ".join(sorted(found.provides_extra)))
"""


class StepError(Exception):
    """A step that did not pass, with the reason."""


def run(*command: object, cwd: Path) -> str:
    """Run a command and return its output; only what is installed can be imported."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise StepError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{tail}")
    return done.stdout


def version() -> str:
    """Return the version, which is written in one place."""
    text = (ROOT / "src/wisecrowd/_version.py").read_text(encoding="utf-8")
    return str(re.findall(r'__version__ = "(.+)"', text)[0])


class Release:
    """The steps, and what they leave for the next ones, in a temporary folder."""

    def __init__(self, folder: Path, tests: list[str]) -> None:
        self.folder, self.tests = folder, tests
        self.built = folder / "dist"
        self.python = folder / "empty" / "bin" / "python"

    # ------------------------------------------------------------------------ the tree

    def clean_tree(self) -> str:
        """Require that nothing is uncommitted."""
        changed = run("git", "status", "--porcelain", cwd=ROOT).splitlines()
        if changed:
            raise StepError(f"{len(changed)} files are not committed, such as {changed[0][3:]}.")
        return run("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip()

    def one_version(self) -> str:
        """Compare the version with the changelog and the citation."""
        own = version()
        log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        first = re.findall(r"^## \[(.+?)\]", log, re.MULTILINE)[0]
        if first != own:
            raise StepError(f"CHANGELOG.md starts with [{first}]; the version is {own}.")
        cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
        if f"\nversion: {own}\n" not in cited:
            raise StepError(f"CITATION.cff does not name the version {own}.")
        return own

    # ----------------------------------------------------------------------- the files

    def build(self) -> str:
        """Build the sdist from the tree, and the wheel from the sdist."""
        tools = self.folder / "tools"
        run(sys.executable, "-m", "venv", tools, cwd=self.folder)
        run(tools / "bin/python", "-m", "pip", "install", "--quiet", "build", cwd=self.folder)
        run(tools / "bin/python", "-m", "build", "-o", self.built, ROOT, cwd=self.folder)
        return ", ".join(f"{p.name} ({p.stat().st_size / 1e6:.1f} MB)" for p in self._files())

    def _files(self) -> list[Path]:
        return sorted(self.built.iterdir())

    def _wheel(self) -> Path:
        return next(self.built.glob("*.whl"))

    def contents(self) -> str:
        """Look for templates, types and licence in the wheel, and for anything else."""
        with zipfile.ZipFile(self._wheel()) as wheel:
            names = set(wheel.namelist())
            size = sum(info.file_size for info in wheel.infolist())
        lost = [name for name in NEEDED if name not in names]
        templates = ROOT / "src/wisecrowd/reporting/templates"
        lost += [p.name for p in templates.iterdir()
                 if f"wisecrowd/reporting/templates/{p.name}" not in names]  # fmt: skip
        if not any(name.endswith("licenses/LICENSE") for name in names):
            lost.append("LICENSE")
        if lost:
            raise StepError(f"The wheel lacks {', '.join(lost)}.")
        strange = [n for n in names if n.partition("/")[0].partition("-")[0] != "wisecrowd"]
        strange += [n for n in names if "__pycache__" in n]
        if strange:
            raise StepError(f"The wheel holds {strange[0]}, which is not part of the package.")
        with tarfile.open(next(self.built.glob("*.tar.gz"))) as sources:
            sources.extractall(self.folder, filter="data")
        lost = [name for name in NEEDED_SOURCES if not (self._sources() / name).exists()]
        if lost:
            raise StepError(f"The sdist lacks {', '.join(lost)}.")
        return f"{len(names)} files in the wheel, {size / 1e6:.1f} MB unpacked"

    def _sources(self) -> Path:
        return self.folder / f"wisecrowd-{version()}"

    def metadata(self) -> str:
        """Validate the metadata."""
        python = self.folder / "tools/bin/python"
        return run(python, "-c", METADATA, self._wheel(), cwd=self.folder).strip()

    # ---------------------------------------------------------- in an empty environment

    def install(self) -> str:
        """Install the wheel in an empty environment, without extras."""
        run(sys.executable, "-m", "venv", self.folder / "empty", cwd=self.folder)
        self._pip(self._wheel())
        run(self.python, "-m", "pip", "check", cwd=self.folder)
        packages = next((self.folder / "empty/lib").glob("python*/site-packages"))
        size = sum(p.stat().st_size for p in packages.rglob("*") if p.is_file())
        return f"{size / 1e6:.0f} MB of packages, with pip"

    def _pip(self, *requirements: object) -> None:
        limits = ["-c", ROOT / "constraints/torch.txt"]
        run(self.python, "-m", "pip", "install", "--quiet", *limits, *requirements, cwd=self.folder)

    def first_steps(self) -> str:
        """Run the commands of docs/install.md with the base alone."""
        page = (self._sources() / "docs/install.md").read_text(encoding="utf-8")
        commands = re.findall(r"^\$ wisecrowd (.+)$", page, re.MULTILINE)
        for command in commands:
            run(self.folder / "empty/bin/wisecrowd", *shlex.split(command), cwd=self.folder)
        return f"{len(commands)} commands"

    def demo(self) -> str:
        """Install the extras, and run the demo of the sdist."""
        self._pip(f"{self._wheel()}[demo,deep,report]")
        place = self.folder / "elsewhere"
        place.mkdir()
        said = run(self.python, self._sources() / "examples/demo.py", cwd=place)
        if not (place / "demo-output/report.html").exists():
            raise StepError("The demo wrote no report.")
        return next(line.strip() for line in said.splitlines() if "gained" in line)

    def quick_tests(self) -> str:
        """Run quick tests of the sdist on the installed wheel, its own sources removed."""
        self._pip(f"{self._wheel()}[dev]")
        shutil.rmtree(self._sources() / "src")
        # No plugin writes into the sources, and warnings stay errors.
        said = run(
            self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *self.tests,
            cwd=self._sources(),
        )  # fmt: skip
        return said.strip().splitlines()[-1]

    def steps(self, release: bool) -> list[Callable[[], str]]:
        """Return the steps in order."""
        files = [self.build, self.contents, self.metadata]
        empty = [self.install, self.first_steps, self.demo, self.quick_tests]
        return [*([self.clean_tree, self.one_version] if release else []), *files, *empty]


def main(arguments: list[str]) -> int:
    """Run all steps; those after a failure run too, where they can."""
    release = "--wheel" not in arguments
    tests = [argument for argument in arguments if not argument.startswith("--")] or QUICK
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        made = Release(Path(name), tests)
        for step in made.steps(release):
            start = time.monotonic()
            try:
                mark, said = "pass", step()
            except (StepError, OSError, StopIteration, IndexError) as error:
                mark, said = "FAIL", str(error) or type(error).__name__
                failed += 1
            title = (step.__doc__ or "").strip()
            print(f"{mark}  {title}  [{time.monotonic() - start:.0f} s]\n      {said}", flush=True)
        if not failed:
            shutil.copytree(made.built, ROOT / "dist", dirs_exist_ok=True)
    print(f"{failed} steps failed." if failed else "All steps passed; the files are in dist/.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
