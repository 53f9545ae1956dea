"""The rules of asking as options, for ``wisecrowd next`` and ``wisecrowd loop``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wisecrowd.cli import options

RULES = (
    "policy", "model", "gold_share", "min_labels", "max_labels", "budget", "stop", "target",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Policy, limits, gold questions and stop rule."""

    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Policy that chooses.")
    ] = "uncertain"
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="auto|one-coin|confusion", help="Model that drives the policy."
        ),
    ] = "auto"
    gold: Annotated[
        str | None,
        typer.Option("--gold", metavar="FILE", help="Gold questions: task, label."),
    ] = None
    gold_columns: options.GoldColumns = None
    gold_share: Annotated[
        float,
        typer.Option("--gold-share", metavar="SHARE", help="Share of gold questions, such as .05."),
    ] = 0.0
    min_labels: Annotated[
        int, typer.Option("--min-labels", min=0, metavar="N", help="Labels every task gets first.")
    ] = 1
    max_labels: Annotated[
        int | None, typer.Option("--max-labels", metavar="N", help="Most labels of a task.")
    ] = None
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="COST", help="Total cost of the answers.")
    ] = None
    stop: Annotated[
        float,
        typer.Option(
            "--stop", metavar="RATE", help="Stop when fewer labels change per answer; 0: never."
        ),
    ] = 0.03
    target: Annotated[
        float | None,
        typer.Option("--target", metavar="SHARE", help="Stop at this accuracy on held-out gold."),
    ] = None
    open_tasks: Annotated[
        bool, typer.Option("--open", help="Accept answers about tasks that are not in --tasks.")
    ] = False

    def rules(self, seed: int | None) -> dict[str, Any]:
        """Return the settings of ``AskingRules``."""
        return {name: getattr(self, name) for name in RULES} | {"random_state": seed or 0}
