"""Workers judged by known answers that say too little, or contradict themselves."""

from __future__ import annotations

from tests.support.attacks.attack import Attack

ANSWERS = "task,worker,label\n" + "".join(
    f"t{i},{name},{'ab'[(i + (i % 5 == n)) % 2]}\n"
    for i in range(40)
    for n, name in enumerate("xyz")
)
TRUTH = "task,label\n" + "".join(f"t{i},{'ab'[i % 2]}\n" for i in range(40))
FILES = {"answers.csv": ANSWERS, "truth.csv": TRUTH}
EVALUATE = ("evaluate", "answers.csv", "--truth", "truth.csv")

ATTACKS = (
    Attack(name="workers: a near miss, scored", arguments=(*EVALUATE, "--workers"), files=FILES),
    Attack(
        name="workers: a claim without the option",
        arguments=(*EVALUATE, "--claimed", "claims.csv"),
        files={**FILES, "claims.csv": "worker,accuracy\nx,0.9\n"},
        refused=("--claimed", "--workers"),
    ),
    Attack(
        name="workers: claims of nobody here",
        arguments=(*EVALUATE, "--workers", "--claimed", "claims.csv"),
        files={**FILES, "claims.csv": "worker,accuracy\nzoe,0.9\n"},
        refused=("none of the workers",),
    ),
    Attack(
        name="workers: a claim that is no number",
        arguments=(*EVALUATE, "--workers", "--claimed", "claims.csv"),
        files={**FILES, "claims.csv": "worker,accuracy\nx,good\n"},
        refused=("not a number",),
    ),
)
