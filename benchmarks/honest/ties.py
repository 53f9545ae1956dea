"""Ties: two who contradict each other, and one worker or one label, give no certainty.

``python -m benchmarks.run ties`` runs the cases of the common check on every method of every kind.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmarks.rows import Row
from wisecrowd.core.answers import ONE_WORKER
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.testing.foundation import fit_or_refusal
from wisecrowd.testing.humility import CASES, ROUNDING


def tie_checks(kind: str, names: tuple[str, ...] | None = None) -> Iterator[tuple[str, str, bool]]:
    """Yield method, case, and whether it claims too much or keeps silent about one worker.

    A method that refuses a case claims nothing.
    """
    for name in map(kebab_case, KINDS[kind].method_modules()):
        if names is not None and name not in names:
            continue
        cls = get_method(name)
        for case in CASES[kind](cls()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = fit_or_refusal(cls(), case.data)
            if fitted is None:
                continue
            found = {finding.id for finding in fitted.findings_}
            silent = case.alone and ONE_WORKER not in found
            yield name, case.what, silent or case.excess(fitted) > ROUNDING


def run(names: tuple[str, ...] | None = None) -> list[Row]:
    """Count the checks that fail, for each kind and in all."""
    rows, n_done, n_failed = [], 0, 0
    for kind in KINDS:
        done = list(tie_checks(kind, names))
        failed = [f"{name}: {what}" for name, what, fails in done if fails]
        text = f"{len(failed)} of {len(done)} fail" + "".join(f"; {one}" for one in failed)
        if done:
            rows.append(Row(f"tie checks, {kind}", "0 fail", text, not failed))
        n_done, n_failed = n_done + len(done), n_failed + len(failed)
    text = f"{n_failed} of {n_done} fail"
    return [
        *rows,
        Row("tie checks, all methods of all kinds", "0 fail", text, not n_failed),
    ]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
