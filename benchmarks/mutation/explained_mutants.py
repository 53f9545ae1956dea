"""Mistakes that survive the tests and may: no result changes, or only a bound on time or memory.

``python -m benchmarks.mutation`` names the reason beside such a survivor. Each entry is a module, a
part of the line as it was, a part of what it became, and why.
"""

from __future__ import annotations

EXPLAINED: tuple[tuple[str, str, str, str], ...] = (
    (
        "kinds/classes/families/moments/third_moments.py",
        "np.full(labels.n_tasks, -1)",
        "- 2",
        "any negative code is none",
    ),
    (
        "kinds/classes/methods/coupled_nmf.py",
        "np.where(seen, tables, 1.0)",
        "2.0",
        "not used where unseen",
    ),
    (
        "kinds/classes/families/moments/third_moments.py",
        "WORK = 20_000_000",
        "20000001",
        "a limit on time alone",
    ),
    (
        "kinds/classes/families/moments/third_moments.py",
        "WORK // size**3",
        "size** 2",
        "a limit on time alone",
    ),
    (
        "kinds/classes/methods/max_margin_vote.py",
        "order[former] = 0",
        "-1",
        "first of the order either way",
    ),
    (
        "kinds/classes/methods/rank_one.py",
        "LONGEST, False",
        "True",
        "set again in the first round",
    ),
    (
        "kinds/classes/families/dependence.py",
        "len(factors), -1)",
        "- 2",
        "NumPy takes both for the rest",
    ),
    (
        "kinds/classes/families/skill_vote.py",
        "not top > 0",
        "!= 0",
        "an absolute value is never negative",
    ),
    (
        "kinds/classes/methods/multi_spa.py",
        "weight > 0",
        "-1",
        "full rank leaves no empty column",
    ),
    (
        "kinds/classes/families/moments/pair_moments.py",
        "(per_task**2).sum()",
        "** 3",
        "a bound on memory, not exact",
    ),
    (
        "kinds/classes/families/worker_groups.py",
        "require_memory(8 * m * m",
        "m + m",
        "a bound on memory",
    ),
    (
        "kinds/classes/kernels/glad_fast.py",
        "ROUNDING * (1.0 + abs(value))",
        "/",
        "a rounding tolerance",
    ),
    (
        "kinds/classes/kernels/confusion_fast.py",
        "AHEAD = 8",
        "AHEAD",
        "how far ahead memory is asked for",
    ),
    ("kernels/compiling.py", "for line in (0, 64)", "for line", "which memory is asked for early"),
    (
        "kinds/classes/families/moments/pair_moments.py",
        "float(J) ** 2) / 2",
        "/ 1",
        "a bound on memory, not exact",
    ),
    ("kinds/classes/methods/glad.py", "SETTLING_STEPS = 30", "31", "settled before"),
    ("kinds/classes/methods/glad.py", "value > best", ">=", "equal values climb to the same top"),
    (
        "kinds/classes/families/moments/third_moments.py",
        "np.empty((0, 3)",
        "(0, 4)",
        "an empty table of either width",
    ),
    (
        "kinds/classes/methods/rank_one.py",
        "1e-300)",
        "1.0)",
        "a floor below all curvatures that occur",
    ),
    (
        "kinds/classes/methods/group_aware_dawid_skene.py",
        "8 * (6 * J * K * K",
        "7 * J",
        "a bound on memory",
    ),
    ("core/columns.py", "close[0]", "close[ -1]", "there is one"),
    ("core/ids/encoding.py", "else -1", "- 2", "any negative code is none"),
    ("core/validation.py", "np.int32(-1)", "- 2", "any negative code is none"),
)


def reason(module: str, before: str, after: str) -> str | None:
    """Return why a mistake is none, if it is known."""
    for where, was, became, why in EXPLAINED:
        if module.endswith(where) and was in before and became in after:
            return why
    return None
