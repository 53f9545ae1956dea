"""Packs with one damaged file, in three engines: refused by one sentence, or no harm done.

python -m benchmarks.trust.damaged_packs          200 corruptions of each kind
python -m benchmarks.trust.damaged_packs 20       fewer

Every corruption is of one file: numbers out of range, missing, swapped or repeated, other types and
shapes, ids of another type or too few, flipped bits, cut files, pipes and folders in their place. A
forged pack also has sizes and digests that fit; its content may then be another crowd, but no
command may crash. Compiled kernels run at every size here.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
from tests.support.damaged_packs import METHODS, command, copied, damage, forge, write_pack
from tests.support.faults import run_with

from benchmarks.rows import Row
from wisecrowd import kernels
from wisecrowd.cli import main
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.registry import get_method
from wisecrowd.packs.fit import fit_pack

N_CASES = 200  # of each kind
ENGINES = ("memory", "files", "pool")
KINDS = {"classes": ("classes", "patterns"), "numbers": ("numbers",), "pairs": ("pairs",)}
REFUSED, SAME, OTHER = "refused by one sentence", "the same bits", "another crowd"


def run() -> list[Row]:
    return list(rows(N_CASES))


def rows(n_cases: int) -> Iterator[Row]:
    """Yield a row for each kind: damaged, then forged."""
    before, kernels.COMPILE_FROM = kernels.COMPILE_FROM, 0
    try:
        with tempfile.TemporaryDirectory() as name, _processes() as executor:
            for kind, packs in KINDS.items():
                judge = Judge(Path(name), packs, executor)
                yield judge.row(f"{kind}: {n_cases} damaged files x 3 engines", n_cases, False)
                yield judge.row(f"{kind}: {n_cases} forged packs x 3 engines", n_cases, True)
    finally:
        kernels.COMPILE_FROM = before


def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), initializer=_compile)


def _compile() -> None:
    kernels.COMPILE_FROM = 0


class Judge:
    """Damages copies of packs, and says what came of commands on them.

    Parameters
    ----------
    folder : Path
    packs : names of packs
    executor : Executor
        Processes of the pool, which would take seconds to start for every case.
    """

    def __init__(self, folder: Path, packs: tuple[str, ...], executor: Executor) -> None:
        self.work, self.executor = folder / "work", executor
        self.work.mkdir(exist_ok=True)
        self.packs = {name: write_pack(folder, name) for name in packs}
        self.whole = {}
        for name, pack in self.packs.items():
            copied(pack, self.work / "p")
            for engine in ENGINES[:2]:  # here first: forks then have the libraries loaded
                place = [str(self.work / one) for one in ("p", "y.csv")]
                given = [dict(zip(("p", "y.csv"), place, strict=True)).get(one, one)
                         for one in command(name, engine)]  # fmt: skip
                assert main.run(given) == 0
            for engine in ENGINES:
                code, error = self._fit(name, engine)
                assert code == 0, error
                self.whole[name, engine] = self._bits()

    def row(self, what: str, n_cases: int, forged: bool) -> Row:
        """Damage one file in each case, and count what engines made of it."""
        rng, found = np.random.default_rng(int(forged)), Counter[str]()
        names = list(self.packs)
        for number in range(n_cases):
            name = names[number % len(names)]
            pack = copied(self.packs[name], self.work / "p")
            done = damage(pack, rng)
            if forged:
                forge(pack)
            for engine in ENGINES:
                outcome = self._outcome(name, engine, forged)
                found[outcome] += 1
                if outcome not in (REFUSED, SAME, OTHER):
                    print(name, *done, engine, outcome, file=sys.stderr, flush=True)
        good = found[REFUSED] + found[SAME] + found[OTHER] * forged
        bar = "refused or answered" if forged else "refused or the same bits"
        shown = ", ".join(f"{count} {outcome[:40]}" for outcome, count in found.most_common())
        return Row(what, f"{3 * n_cases} {bar}", shown, good == 3 * n_cases)

    def _outcome(self, name: str, engine: str, forged: bool) -> str:
        code, error = self._fit(name, engine)
        if code == 0:
            same = self._bits() == self.whole[name, engine]
            return SAME if same else OTHER if forged else "silently wrong"
        lines = error.strip().splitlines()
        clear = len(lines) == 1 and lines[0].endswith("; copy the pack again.")
        return REFUSED if code > 0 and clear else f"exit {code}: {error.strip()[-200:]}"

    def _fit(self, name: str, engine: str) -> tuple[int, str]:
        if engine != "pool":
            made = run_with(None, command(name, engine), self.work)
            return made.code, made.err
        key, parameter = METHODS[name]
        method = get_method(key)(max_iter=int(parameter.removeprefix("max_iter=")))
        try:
            fit_pack(method, self.work / "p", self.work / "y", executor=self.executor)
        except WisecrowdError as error:
            return 1, str(error)
        except Exception as error:
            return -1, f"{type(error).__name__}: {error}"
        return 0, ""

    def _bits(self) -> str:
        """Return the digest of the results, which are removed."""
        whole = sha256()
        for file in sorted([*self.work.glob("y.csv"), *self.work.glob("y/*.parquet")]):
            whole.update(file.read_bytes())
        for made in self.work.glob("y*"):
            made.unlink() if made.is_file() else shutil.rmtree(made)
        return whole.hexdigest()


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else N_CASES):
        print(row.line(), flush=True)
