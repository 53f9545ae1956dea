"""Attacks on campaigns: addresses of the service, and databases that were tampered with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.attacks.attack import Attack
from tests.support.damaged_campaigns import DAMAGES, make_campaign

TASKS = "task\nt1\nt2\n"
ANSWERS = "task,worker,label\nt1,a,x\nt2,b,y\nt1,b,x\n"
ADDRESSES = (
    "127.0.0.1:\u0668\u0667\u0666\u0665", "127.0.0.1:\u00b2", "127.0.0.1:" + "9" * 5000,
    "\u0661\u0662\u0667.0.0.1:8765", "127.0.0.1:-1", "127.0.0.1:0", "8765", "127.0.0.1:",
)  # fmt: skip
DATABASES = (
    "answers.task = 99", "answers.cost = b'12'", "meta.value = 'null'", "tasks id [1]",
    "no table classes", "no column cost", "meta is not UTF-8", "a trigger", "version 3",
    "setting rules = {}", "rounds.gains = '{'", "rule target = 'x'", "bytes 1", "text",
)  # fmt: skip


def _damaged(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "c").mkdir()
        make_campaign(folder / "c" / "campaign.db")
        DAMAGES[name](folder / "c" / "campaign.db")

    return make


def _costs(value: str) -> dict[str, str]:
    return {"a.csv": ANSWERS, "t.csv": TASKS, "w.csv": f"worker,cost\na,{value}\nb,1\n"}


_NEXT = ("next", "a.csv", "--tasks", "t.csv", "--workers", "w.csv", "-n", "1")
ATTACKS = (
    *(
        Attack(
            name=f"service: listen on {address[:20]!a}",
            arguments=("loop", "c", "--tasks", "t.csv", "--listen", address),
            files={"t.csv": TASKS},
            refused=("--listen", "127.0.0.1:8765"),
        )
        for address in ADDRESSES
    ),
    *(
        Attack(
            name=f"service: campaign.db, {name}",
            arguments=("loop", "c"),
            make=_damaged(name),
            refused=("campaign",),
        )
        for name in DATABASES
    ),
    *(
        Attack(
            name=f"service: cost {value}", arguments=_NEXT, files=_costs(value),
            refused=("cost of worker 'a'",),
        )
        for value in ("nan", "inf", "1e308", "0")
    ),
    Attack(name="service: cost 2.5", arguments=_NEXT, files=_costs("2.5")),
    Attack(
        name="service: tasks that are called nan and inf",
        arguments=("next", "a.csv", "--tasks", "t.csv", "-n", "2", "--open"),
        files={"a.csv": ANSWERS, "t.csv": "task\nnan\ninf\n"},
        wrong=lambda folder, out: "" if {"nan", "inf"} <= set(out.replace("\n", ",").split(","))
        else "tasks are missing",
    ),
)  # fmt: skip
