"""Commands about asking: ``next``, ``replay``, ``loop`` and ``label-studio``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading, Running

RULES = (
    "policy", "model", "gold_share", "min_labels", "max_labels", "budget", "stop", "target",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Policy, limits, gold questions and stop rule."""

    panel: ClassVar[str] = "Asking"

    policy: Annotated[str, option("--policy NAME", "Policy that chooses.")] = "uncertain"
    model: Annotated[
        str, option("--model auto|one-coin|confusion", "Model that drives the policy.")
    ] = "auto"
    gold: Annotated[str | None, option("--gold FILE", "Gold questions: task, label.")] = None
    gold_columns: shared.GoldColumns = None
    gold_share: Annotated[
        float, option("--gold-share SHARE", "Share of gold questions, such as .05.")
    ] = 0.0
    min_labels: Annotated[int, option("--min-labels N", "Labels every task gets first.", min=0)] = 1
    max_labels: Annotated[int | None, option("--max-labels N", "Most labels of a task.")] = None
    budget: Annotated[float | None, option("--budget COST", "Total cost of the answers.")] = None
    stop: Annotated[
        float, option("--stop RATE", "Stop when fewer labels change per answer; 0: never.")
    ] = 0.03
    target: Annotated[
        float | None, option("--target SHARE", "Stop at this accuracy on held-out gold.")
    ] = None
    open_tasks: Annotated[
        bool, option("--open", "Accept answers about tasks that are not in --tasks.")
    ] = False

    def rules(self, seed: int | None) -> dict[str, Any]:
        """Return the settings of ``AskingRules``."""
        return {name: getattr(self, name) for name in RULES} | {"random_state": seed or 0}


@dataclass(frozen=True, kw_only=True)
class NextOptions:
    """The options of ``wisecrowd next``."""

    tasks: Annotated[str, option("--tasks FILE", "All tasks: a column of task ids.")]
    n: Annotated[int, option("-n N", "Number of queries.", min=1)] = 50
    output: shared.Output = None
    available: Annotated[
        str | None,
        option(
            "--workers FILE",
            "Available workers: a column of worker ids, and cost if they differ; by default "
            "queries name no worker.",
        ),
    ] = None
    asking: Asking
    task_prior: Annotated[
        str | None,
        option(
            "--task-prior FILE",
            "Class probabilities before any answer: task and a column p_CLASS per class, as "
            "predict --soft writes.",
        ),
    ] = None
    reading: Reading
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def next_queries(context: typer.Context, files: shared.Files, asked: NextOptions) -> None:
    """Choose which tasks to ask about next, and whom.

    The result has one row per query: task, worker, score, reason. The exit code is 4 when the stop
    rule says stop. Nothing is remembered between calls: the answers decide.
    """
    from wisecrowd.cli.run import campaigns as run

    run.next_queries(context, files, asked)


DEFAULT_POLICIES = "random,balanced,uncertain"


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """The options of ``wisecrowd replay``."""

    truth: Annotated[str, option("--truth FILE", "True classes for scoring: task, label.")]
    output: shared.Output = None
    policies: Annotated[
        str,
        option("--policies A,B,...", "Policies to replay; random and balanced are always added."),
    ] = DEFAULT_POLICIES
    budgets: Annotated[str, option("--budgets A,B,...", "Percentages of the log.")] = "25,50,75"
    seeds: Annotated[int, option("--seeds N", "Runs of each policy.", min=1)] = 5
    method: Annotated[str, option("-m --method NAME", "Method of the final labels.")] = (
        "hierarchical-dawid-skene"
    )
    parameter: shared.Parameters = None
    model: Annotated[
        str, option("--model auto|one-coin|confusion", "Model that drives the policies.")
    ] = "auto"
    plot: Annotated[
        str | None,
        option(
            "--plot FILE", "Output .png, .svg or .pdf file: accuracy against labels, by policy."
        ),
    ] = None
    truth_columns: shared.TruthColumns = None
    reading: Reading
    as_json: shared.Json = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def replay(context: typer.Context, files: shared.Files, asked: ReplayOptions) -> None:
    """Replay a log of answers: the accuracy that each policy reaches with a part of them.

    The result has one row per policy and budget: policy, budget, accuracy, standard_error. Only
    pairs of task and worker in the log can be asked.
    """
    from wisecrowd.cli.run import campaigns as run

    run.replay(context, files, asked)


Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="Folder of the campaign; made if it is not there.")
]


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """The options of ``wisecrowd loop``."""

    tasks: Annotated[str | None, option("--tasks FILE", "All tasks, for a new campaign.")] = None
    listen: Annotated[
        str | None,
        option(
            "--listen ADDRESS:PORT",
            "Serve over HTTP, such as on 127.0.0.1:8765; by default files only.",
        ),
    ] = None
    secret: Annotated[
        str | None,
        option(
            "--secret env:NAME",
            "Environment variable with the secret that requests need; required for addresses "
            "other than loopback.",
        ),
    ] = None
    queries: Annotated[int, option("-n --queries N", "Queries in outbox/next.csv.", min=1)] = 50
    classes: shared.Classes = None
    asking: Asking
    seed: shared.Seed = None
    quiet: shared.Quiet = False


@command
def loop(context: typer.Context, folder: Folder, asked: LoopOptions) -> None:
    """Run a campaign in a folder: answers as files or over HTTP, and the next queries out.

    FOLDER/inbox takes files of answers, which move to done/ or refused/. FOLDER/outbox/next.csv has
    the next queries. --listen adds POST /next, POST /answers and a live page at /. An
    answer is on the disk before its sender gets a reply. FOLDER/campaign.db continues where it was
    stopped or killed.
    """
    from wisecrowd.cli.run import loop as run

    run.loop(context, folder, asked)


Queries = Annotated[
    int, option("-n --queries N", "Queries that Label Studio gets at a time.", min=1, max=10_000)
]


@dataclass(frozen=True, kw_only=True)
class ProjectOptions:
    """Where the project is, and which of its answers count."""

    panel: ClassVar[str] = "Project"

    url: Annotated[
        str | None,
        option(
            "--url URL",
            "Address of Label Studio, as http://127.0.0.1:8080.",
            envvar="LABEL_STUDIO_URL",
        ),
    ] = None
    project: Annotated[int | None, option("--project N", "Number of the project.", min=1)] = None
    token: Annotated[
        str,
        option("--token env:NAME", "Environment variable with the token of a user of the project."),
    ] = "env:LABEL_STUDIO_API_KEY"
    label: Annotated[
        str | None, option("--label NAME", "Control whose answers are the labels.")
    ] = None
    task: Annotated[
        str | None,
        option(
            "--task NAME",
            "Key of the tasks' data that holds their ids (default: Label Studio's number).",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PullOptions:
    """The options of ``wisecrowd label-studio pull``."""

    source: ProjectOptions
    campaign: Annotated[
        str | None, option("--campaign FOLDER", "Campaign that gets the answers too.")
    ] = None
    output: shared.Output = None
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@dataclass(frozen=True, kw_only=True)
class PushOptions:
    """The options of ``wisecrowd label-studio push``."""

    source: ProjectOptions
    queries: Queries = 50
    asking: Asking
    seed: shared.Seed = None
    as_json: shared.PrintJson = False
    quiet: shared.Quiet = False


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """The options of ``wisecrowd label-studio watch``."""

    source: ProjectOptions
    every: Annotated[float, option("--every SECONDS", "Time between two looks.", min=0.1)] = 10.0
    webhook: Annotated[
        str | None,
        option(
            "--webhook URL",
            "Have Label Studio report to a loop of this campaign, as "
            "http://127.0.0.1:8765/webhooks/label-studio.",
        ),
    ] = None
    secret: Annotated[
        str | None, option("--secret env:NAME", "Environment variable with the loop's secret.")
    ] = None
    queries: Queries = 50
    asking: Asking
    seed: shared.Seed = None
    as_json: Annotated[bool, option("--json", "Print one JSON object per look, on a line.")] = False
    quiet: shared.Quiet = False


@command
def pull(context: typer.Context, asked: PullOptions) -> None:
    """Write the answers of a project as a table: task, worker, label, timestamp.

    Of several annotations by one user the latest counts; skipped and empty ones do not.
    """
    from wisecrowd.cli.run import label_studio as run

    run.pull(context, asked)


@command
def push(context: typer.Context, folder: Folder, asked: PushOptions) -> None:
    """Read the answers of a project once, and make the campaign's order that of its queue.

    Label Studio then hands out our next queries first. The project is set to uncertainty sampling
    with one annotation per task; the overlap of the queried tasks gives them more. The exit code is
    4 when the stop rule says stop.
    """
    from wisecrowd.cli.run import label_studio as run

    run.push(context, folder, asked)


@command
def watch(context: typer.Context, folder: Folder, asked: WatchOptions) -> None:
    """Keep a campaign and a project in step until the stop rule says stop, or Ctrl-C.

    Every look reads what has changed in the project, and sends the order if it is a new one. A
    webhook makes it look at once. A watch that was killed is started again with the same
    command; FOLDER alone is enough then.
    """
    from wisecrowd.cli.run import label_studio as run

    run.watch(context, folder, asked)
