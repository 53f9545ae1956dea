"""Ties: two who contradict each other, and one worker or one label, give no certainty.

``python -m benchmarks.run ties`` runs the cases of the common check on every class method.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmarks.rows import Row
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing.foundation import fit_or_refusal
from wisecrowd.testing.humility import CASES, ROUNDING

KINDS = ("labels", "ordered")


def tie_checks(names: tuple[str, ...] | None = None) -> Iterator[tuple[str, str, bool]]:
    """Yield method, case and whether a claim is above what the labels support.

    A method that refuses a case claims nothing.
    """
    for kind in KINDS:
        for name in method_names(type=kind) if names is None else names:
            cls = get_method(name)
            method = cls()
            if method.takes != kind:
                continue
            for case in CASES[kind](method):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = fit_or_refusal(cls(), case.data)
                yield name, case.what, fitted is not None and case.excess(fitted) > ROUNDING


def run(names: tuple[str, ...] | None = None) -> list[Row]:
    """Count the checks that fail."""
    done = list(tie_checks(names))
    failed = [f"{name}: {what}" for name, what, fails in done if fails]
    text = f"{len(failed)} of {len(done)} fail" + "".join(f"; {one}" for one in failed)
    return [Row("tie checks, all class methods", "0 fail", text, not failed)]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
