"""``wisecrowd loop``: a campaign in a folder, and as a service."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.loop_folder import LoopFolder, check_new_campaign, only_loop
from wisecrowd.acquire.service import make_app, warm_up
from wisecrowd.acquire.service_guard import check_address
from wisecrowd.acquire.suggesting import AskingRules
from wisecrowd.cli.options.campaigns import LoopOptions
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.campaigns import read_ids
from wisecrowd.cli.run.inputs import KnownFile, read_gold
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.read_options import names_of

DATABASE = "campaign.db"

SECONDS = 1.0  # between two looks at the folder


def loop(context: typer.Context, folder: str, asked: LoopOptions) -> None:
    """Run ``wisecrowd loop``."""
    secret = _secret(asked.secret)
    place = None if asked.listen is None else _address(asked.listen)
    loopback = True if place is None else check_address(place[0], secret)
    _require_campaign(folder, asked)
    with Notes(asked.quiet) as notes, only_loop(Path(folder), notes):
        with _campaign(folder, asked, notes) as campaign:
            files = LoopFolder(folder, campaign, notes, asked.queries)
            if place is None:
                notes(f"watching {folder}/inbox ; stop with Ctrl-C")
                _watch(files)
            else:
                app = make_app(campaign, secret, listen=place)
                if not loopback:
                    notes(f"{place[0]} is reachable by others, without encryption; put TLS in "
                          "front of it")  # fmt: skip
                warm_up()
                host = f"[{place[0]}]" if ":" in place[0] else place[0]
                notes(f"listening on http://{host}:{place[1]}/ ; stop with Ctrl-C")
                with _watching(files):
                    _serve(app, *place)
        notes("stopped; nothing is lost")


def _address(text: str) -> tuple[str, int]:
    """Return address and port; digits of other scripts are refused, though Python reads them."""
    host, _, port = text.rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not host or not host.isascii() or not is_number or not 0 < int(port) < 65536:
        raise ParameterError(f"--listen is {text!r}; give address and port, as 127.0.0.1:8765.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _secret(place: str | None) -> str | None:
    if place is None:
        return None
    value = os.environ.get(place.removeprefix("env:")) if place.startswith("env:") else None
    if not value or len(value) < 8:
        raise ParameterError(
            "--secret names an environment variable, as env:NAME, that holds at least 8 characters."
        )
    return value


def _require_campaign(folder: str, asked: LoopOptions) -> None:
    """Refuse options that are wrong before anything is written."""
    AskingRules(**asked.asking.rules(asked.seed)).check()
    if asked.tasks is None and not (Path(folder) / DATABASE).exists():
        raise ParameterError(f"{folder} holds no campaign; start one with --tasks FILE.")
    if not (Path(folder) / DATABASE).exists():
        check_new_campaign(Path(folder))


def _campaign(folder: str, asked: LoopOptions, notes: Notes) -> Any:
    path = Path(folder) / DATABASE
    if path.exists():
        return Campaign.open(path)
    assert asked.tasks is not None
    rules = asked.asking
    gold = KnownFile.given(rules.gold, "--gold", rules.gold_columns, Reading())
    return Campaign(
        read_ids(asked.tasks, "task", "--tasks", None)["task"], classes=names_of(asked.classes),
        gold=read_gold(gold, notes), open_tasks=rules.open_tasks, path=path,
        **rules.rules(asked.seed),
    )  # fmt: skip


def _watch(files: Any, stop: threading.Event | None = None) -> None:
    """Look after the folder every second, until Ctrl-C, a request to terminate, or ``stop``."""
    if stop is None:
        stop = threading.Event()
        ended = stop
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while True:
        files.step()
        if stop.wait(SECONDS):
            break


@contextmanager
def _watching(files: Any) -> Iterator[None]:
    """Look after the folder in a thread."""
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(files, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _serve(app: Any, host: str, port: int) -> None:
    import uvicorn

    sys.setswitchinterval(0.001)  # threads that work let the one that answers run sooner
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)
