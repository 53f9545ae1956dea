"""``wisecrowd loop``: a campaign as a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command

Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="Folder of the campaign; made if it is not there.")
]


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """The options of ``wisecrowd loop``."""

    tasks: Annotated[
        str | None,
        typer.Option("--tasks", metavar="FILE", help="All tasks, for a new campaign."),
    ] = None
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where to listen.")
    ] = "127.0.0.1:8765"
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret",
            metavar="env:NAME",
            help="Environment variable with the secret that requests need; required for addresses "
            "other than loopback.",
        ),
    ] = None
    classes: options.Classes = None
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Policy that chooses.")
    ] = "uncertain"
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="COST", help="Total cost of the answers.")
    ] = None
    max_labels: Annotated[
        int | None, typer.Option("--max-labels", metavar="N", help="Most labels of a task.")
    ] = None
    seed: options.Seed = None
    quiet: options.Quiet = False


@command
def loop(context: typer.Context, folder: Folder, asked: LoopOptions) -> None:
    """Serve a campaign over HTTP: GET /next?worker=ann, POST /answers, a live page at /.

    An answer is on the disk before its sender gets a reply. FOLDER/campaign.db continues where it
    was stopped or killed.
    """
    from wisecrowd.acquire.service import check_address, make_app
    from wisecrowd.cli.terminal import Notes

    host, port = _address(asked.listen)
    secret = _secret(asked.secret)
    loopback = check_address(host, secret)
    with Notes(asked.quiet) as notes:
        with _campaign(folder, asked) as campaign:
            app = make_app(campaign, secret)
            if not loopback:
                notes(f"{host} is reachable by others, without encryption; put TLS in front of it")
            notes(f"listening on http://{asked.listen}/ ; stop with Ctrl-C")
            _serve(app, host, port)
        notes("stopped; nothing is lost")


def _address(text: str) -> tuple[str, int]:
    from wisecrowd.core.exceptions import ParameterError

    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ParameterError(f"--listen is {text!r}; give address and port, as 127.0.0.1:8765.")
    return host.strip("[]"), int(port)


def _secret(place: str | None) -> str | None:
    import os

    from wisecrowd.core.exceptions import ParameterError

    if place is None:
        return None
    value = os.environ.get(place.removeprefix("env:")) if place.startswith("env:") else None
    if not value or len(value) < 8:
        raise ParameterError(
            "--secret names an environment variable, as env:NAME, that holds at least 8 characters."
        )
    return value


def _campaign(folder: str, asked: LoopOptions) -> Any:
    from pathlib import Path

    from wisecrowd.acquire.campaign import Campaign
    from wisecrowd.cli.next_queries import read_ids
    from wisecrowd.cli.options import names_of
    from wisecrowd.core.exceptions import ParameterError

    path = Path(folder) / "campaign.db"
    if path.exists():
        return Campaign.open(path)
    if asked.tasks is None:
        raise ParameterError(f"{folder} holds no campaign; start one with --tasks FILE.")
    tasks = read_ids(asked.tasks, "task", "--tasks", None)["task"]
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Campaign(
        tasks, classes=names_of(asked.classes), policy=asked.policy, budget=asked.budget,
        max_labels=asked.max_labels, random_state=asked.seed or 0, path=path,
    )  # fmt: skip


def _serve(app: Any, host: str, port: int) -> None:
    import uvicorn

    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)
