"""Every attack of tests/support/attacks, judged and counted."""

from __future__ import annotations

import sys
from collections import Counter

from tests.support.attacks import every_attack, run_attack
from tests.support.inputs.judging import Outcome

from benchmarks.rows import Row


def run() -> list[Row]:
    attacks = every_attack()
    counts: Counter[Outcome] = Counter()
    for attack in attacks:
        result = run_attack(attack)
        counts[result.outcome] += 1
        if not result.outcome.good:
            told = f"{attack.name}: {result.outcome.value}: {result.detail}"
            print(told, file=sys.stderr, flush=True)
    good = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if outcome.good)
    rows = [Row(f"commands on unexpected files: {len(attacks)}", "", good)]
    for outcome in Outcome:
        if not outcome.good:
            n = counts[outcome]
            rows.append(Row(f"unexpected files: {outcome.value}", "0", str(n), n == 0))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
