"""``wisecrowd label-studio``: answers from a project, and our order into it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_api import LabelStudioClient, UnreachableError
from wisecrowd.acquire.label_studio_mirror import (
    ACTIONS,
    Link,
    counting_answers,
    n_hints,
    webhook_secret,
)
from wisecrowd.acquire.label_studio_watch import Watcher, linked, task_names
from wisecrowd.acquire.loop_folder import only_loop
from wisecrowd.acquire.service import WEBHOOK_HEADER
from wisecrowd.acquire.suggesting import AskingRules
from wisecrowd.cli.options.campaigns import Asking
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.campaigns import REASONS
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_gold
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    print_json,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.storage.atomic import together

if TYPE_CHECKING:
    from wisecrowd.acquire.label_studio_watch import Cycle
from wisecrowd.cli.options.campaigns import ProjectOptions, PullOptions, PushOptions, WatchOptions

STOP = 4  # exit code: the stop rule says stop

DATABASE = "campaign.db"

HINT_SECONDS = 1.0  # at least between two looks, however many webhooks there are


def pull(context: typer.Context, asked: PullOptions) -> None:
    """Run ``wisecrowd pull``."""
    places = split_output(asked.output, asked.as_json)
    check_outputs([places[0]], [], others=filter(None, [places[1]]), overwrite=asked.overwrite)
    with Notes(asked.quiet) as notes:
        client, link = _connected(asked.source, asked.campaign, notes)
        with working("reading the project", notes):
            tasks = [task for page in client.tasks(link.project) for task in page]
            rows = counting_answers(tasks, link)
        notes(f"{len(rows)} answers about {len(tasks)} tasks of project {link.project}")
        if asked.campaign is not None:
            with _campaign(asked.campaign, link, client, Asking(), None, notes) as campaign:
                told = Watcher(client, campaign, link, 1).read()
                notes(f"{asked.campaign}: {told.new} new answers, {told.withdrawn} withdrawn")
        manifest = describe_run(context, [], method="label-studio pull", seed=None, parameters={})
        _show_answers(rows, places, asked, manifest, notes)


def push(context: typer.Context, folder: str, asked: PushOptions) -> None:
    """Run ``wisecrowd push``."""
    with Notes(asked.quiet) as notes:
        client, link = _connected(asked.source, folder, notes)
        with _campaign(folder, link, client, asked.asking, asked.seed, notes) as campaign:
            done = Watcher(client, campaign, link, asked.queries).cycle()
        _note_cycle(done, notes)
        if asked.as_json:
            print_json(_plain(done))
    if done.stop is not None:
        raise typer.Exit(STOP)


def watch(context: typer.Context, folder: str, asked: WatchOptions) -> None:
    """Run ``wisecrowd watch``."""
    with Notes(asked.quiet) as notes:
        client, link = _connected(asked.source, folder, notes)
        with (
            _campaign(folder, link, client, asked.asking, asked.seed, notes) as campaign,
            only_loop(Path(folder) / "label-studio", notes),
        ):
            if asked.webhook is not None:
                _set_webhook(client, link, asked, notes)
            notes(f"watching project {link.project} of {client.url} ; stop with Ctrl-C")
            with _interruptible() as stop:
                _look(client, campaign, link, asked, stop, notes)
        notes("stopped; nothing is lost")


def _look(
    client: LabelStudioClient,
    campaign: Campaign,
    link: Link,
    asked: WatchOptions,
    stop: threading.Event,
    notes: Notes,
) -> None:
    """Look again and again; a server that does not answer is waited for."""
    watcher = Watcher(client, campaign, link, asked.queries)

    def is_hinted(before: int) -> bool:
        return n_hints(campaign) != before

    while not stop.is_set():
        before = n_hints(campaign)
        try:
            done = watcher.cycle()
        except UnreachableError as error:
            notes(f"{error} Trying again every {asked.every:g} seconds.")
        else:
            _note_cycle(done, notes)
            if asked.as_json:
                print_json(_plain(done))
            if done.stop is not None:
                return
        _wait(stop, asked.every, partial(is_hinted, before))


def _wait(stop: threading.Event, seconds: float, is_hinted: Callable[[], bool]) -> None:
    """Wait for the next look; a hint ends it, but not before a second is over."""
    end = time.monotonic() + seconds
    least = time.monotonic() + HINT_SECONDS
    while not stop.is_set() and (left := end - time.monotonic()) > 0:
        stop.wait(min(left, HINT_SECONDS / 4))
        if time.monotonic() >= least and is_hinted():
            return


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C or request to terminate into an event, so that a look is completed."""
    stop = threading.Event()
    before: dict[int, Any] = {}

    def end(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(number, before[number])

    for one in (signal.SIGINT, signal.SIGTERM):
        before[one] = signal.signal(one, end)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _connected(
    asked: ProjectOptions, folder: str | None, notes: Notes
) -> tuple[LabelStudioClient, Link]:
    """Return the client and the link: that of the options, else that which the campaign has."""
    stored = _stored_link(folder)
    url = asked.url or (stored.url if stored else None)
    project = asked.project or (stored.project if stored else None)
    if url is None or project is None:
        lacking = "--url URL" if url is None else "--project N"
        raise ParameterError(f"Give {lacking}: the address of Label Studio and its project.")
    client = LabelStudioClient(url, _from_environment(asked.token, "--token"))
    if not client.is_private:
        notes(f"{client.url} gets the token without encryption; use https")
    control = asked.label or (stored.control if stored else None)
    key = asked.task or (stored.task_key if stored else None)
    return client, linked(client, project, control, key)


def _stored_link(folder: str | None) -> Link | None:
    if folder is None or not (Path(folder) / DATABASE).exists():
        return None
    with Campaign.open(Path(folder) / DATABASE) as campaign:
        return Link.of(campaign)


def _from_environment(place: str, option: str) -> str:
    """Return the value of the environment variable that an option names."""
    value = os.environ.get(place.removeprefix("env:")) if place.startswith("env:") else None
    if not value:
        raise ParameterError(
            f"{option} names an environment variable, as env:NAME, that holds the value; set it, "
            "or name another one."
        )
    return value


def _set_webhook(client: LabelStudioClient, link: Link, asked: WatchOptions, notes: Notes) -> None:
    assert asked.webhook is not None
    headers = {}
    if asked.secret is not None:
        headers[WEBHOOK_HEADER] = webhook_secret(_from_environment(asked.secret, "--secret"))
    new = client.set_webhook(link.project, asked.webhook, ACTIONS, headers)
    notes(f"{'made' if new else 'corrected'} the webhook to {asked.webhook}")


@contextmanager
def _campaign(
    folder: str,
    link: Link,
    client: LabelStudioClient,
    asking: Asking,
    seed: int | None,
    notes: Notes,
) -> Iterator[Campaign]:
    """Open the campaign of a folder, or start one with the tasks of the project."""
    path = Path(folder) / DATABASE
    if path.exists():
        made = Campaign.open(path)
    else:
        rules = asking.rules(seed)
        AskingRules(**rules).check()
        gold = KnownFile.given(asking.gold, "--gold", asking.gold_columns, Reading())
        tasks = task_names(client, link)
        path.parent.mkdir(parents=True, exist_ok=True)
        made = Campaign(tasks, gold=read_gold(gold, notes), open_tasks=True, path=path, **rules)
        notes(f"started a campaign about {len(tasks)} tasks in {folder}")
    with made:
        link.store(made)
        yield made


def _plain(done: Cycle) -> dict[str, Any]:
    pushed = done.pushed
    return {
        "answers": done.n_answers, **done.told._asdict(), "open": done.n_open, "stop": done.stop,
        "version": None if pushed is None else pushed.version,
        "order": None if pushed is None else pushed.tasks,
    }  # fmt: skip


def _note_cycle(done: Cycle, notes: Notes) -> None:
    told = done.told
    if any(told):
        refused = f", {told.refused} refused (not among the classes)" if told.refused else ""
        notes(f"{done.n_answers} answers: {told.new} new, {told.withdrawn} withdrawn{refused}")
    if done.n_left_out:
        notes(f"left out {done.n_left_out} tasks of the project that the campaign does not have")
    if done.pushed is not None:
        for name, value in done.pushed.replaced.items():
            notes(f"changed the project's {name}, which was {value!r}")
        if done.pushed.is_new:
            notes(f"sent the order {done.pushed.version} of {len(done.pushed.tasks)} tasks")
    if done.stop is not None:
        notes(f"stop: {REASONS[done.stop]} ({done.stop}); the labelled tasks are closed")


def _show_answers(
    rows: list[tuple[str, str, str, float]],
    places: tuple[str | None, str | None],
    asked: PullOptions,
    manifest: Any,
    notes: Notes,
) -> None:
    output, document = places
    columns = list(zip(*rows, strict=True)) or [()] * 4
    names = ("task", "worker", "label")
    table: dict[str, Any] = {
        name: np.array(values, dtype=object) for name, values in zip(names, columns, strict=False)
    }
    table["timestamp"] = np.array(columns[3], dtype=np.float64)
    with together():
        if output is not None or not asked.as_json:
            write_result(table, output, manifest, notes, raw=asked.raw_csv, estimates=False)
        if asked.as_json:
            answers = rows_of(table) if output is None else output
            give_json(lambda: {"answers": answers, "notes": notes.said}, document, manifest, notes)
