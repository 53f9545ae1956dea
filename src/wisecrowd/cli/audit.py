"""``wisecrowd audit``: problems of a crowd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.group_options import GroupOptions
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading, Running

if TYPE_CHECKING:
    from wisecrowd.audit.crowd_audit import Audit, Findings
    from wisecrowd.audit.pruning import Pruned
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.reporting.withholding import Withheld
    from wisecrowd.storage.manifest import Manifest

FOUND = 1  # the exit code of --fail-on
MOST_JUDGED = 20  # workers that a terminal shows, the busiest first


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of ``wisecrowd audit``."""

    gold: options.Gold = None
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER",
            help="Output folder for the findings and all tables, as csv.",
        ),
    ] = None  # fmt: skip
    fail_on: options.FailOn = None
    prune_to: Annotated[
        str | None,
        typer.Option("--prune-to", metavar="FILE", help="Output file for the cleaned labels."),
    ] = None
    prune: Annotated[
        list[str] | None,
        typer.Option(
            "--prune",
            metavar="clones|collusion|spammers",
            help="What --prune-to removes, in this order; copies become one worker; repeatable.",
        ),
    ] = None
    unlabelled: Annotated[
        str,
        typer.Option(
            "--unlabelled",
            metavar="refuse|spare|drop",
            help="If pruning would leave tasks without labels: stop, spare their workers, or drop "
            "the tasks.",
        ),
    ] = "refuse"
    part: Annotated[
        list[str] | None,
        typer.Option("--part", metavar="NAME", help="Run only this part of the audit; repeatable."),
    ] = None
    gold_columns: options.GoldColumns = None
    groups: GroupOptions
    reading: Reading
    as_json: options.Json = False
    raw_csv: options.RawCsv = False
    overwrite: options.Overwrite = False
    running: Running


@command
def audit(context: typer.Context, files: options.Files, asked: AuditOptions) -> None:
    """Find spammers, colluders and other problems of a crowd.

    Prints the findings, most severe first. The exit code is 1 only with --fail-on.
    """
    from wisecrowd.audit.crowd_audit import audit_crowd, check_parts
    from wisecrowd.audit.plans import plan_of
    from wisecrowd.audit.pruning import require_prunable
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_gold, read_labels
    from wisecrowd.cli.outputs import check_outputs, give_json, split_output
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.findings import check_severity
    from wisecrowd.core.parameter_checks import check_choice
    from wisecrowd.engines.threads import set_threads
    from wisecrowd.reporting.withholding import FEWEST, Withheld
    from wisecrowd.storage.atomic import together

    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    if asked.fail_on is not None:
        check_severity("--fail-on", asked.fail_on)
    check_choice("--unlabelled", asked.unlabelled, ("refuse", "spare", "drop"))
    kinds = _check_pruning(asked.prune, asked.prune_to)
    _check_names(asked.part, asked.reading.declared_type)
    seed = asked.running.seed or 0
    set_threads(asked.running.threads)
    asked.groups.check()
    sources = [*files, *([gold.path] if gold else []), *asked.groups.sources()]
    _, document = split_output(asked.output, asked.as_json)
    folder = asked.output if document is None else None
    check_outputs(
        [asked.prune_to], [*sources, *asked.reading.key_files], folder=folder,
        others=filter(None, [document]), overwrite=asked.overwrite,
    )  # fmt: skip
    with Notes(asked.running.quiet) as notes:
        labels = asked.groups.attached(read_labels(files, asked.reading, notes))
        known = read_gold(gold, notes)
        parts = list(check_parts(asked.part, plan_of(labels).parts))
        require_prunable(labels, kinds, "--prune")
        with working("auditing", notes):
            found = audit_crowd(
                labels, gold=known, parts=parts, options=asked.groups.part_options(),
                random_state=seed,
            )  # fmt: skip
            pruned = _prune(labels, kinds, asked.unlabelled, seed) if kinds else None
        manifest = describe_run(
            context, sources, method="audit", seed=seed,
            parameters={"parts": parts, "prune": kinds, "unlabelled": asked.unlabelled},
        )  # fmt: skip
        hidden = asked.reading.pseudonymize is not None
        withheld = Withheld.below(labels, FEWEST) if hidden else None
        give = partial(give_json, output=document, manifest=manifest, notes=notes)
        with together():
            _write(found, pruned, folder, asked, manifest, notes, withheld)
            _show(found, pruned, asked, notes, withheld, give)
    if asked.fail_on is not None and len(found.findings.at_least(asked.fail_on)):
        raise typer.Exit(FOUND)


def _check_names(parts: list[str] | None, declared: str | None) -> None:
    """Refuse parts that the declared type lacks, before any file is read."""
    from wisecrowd.audit.crowd_audit import check_parts
    from wisecrowd.audit.plans import AuditPlan, load
    from wisecrowd.core.kinds import get_kind

    kind = None if declared is None else get_kind(declared)
    if kind is not None and kind.audit:
        plan: AuditPlan = load(kind.audit)
        check_parts(parts, plan.parts)


def _check_pruning(prune: list[str] | None, prune_to: str | None) -> list[str]:
    """Return what to remove, in order; nothing without an output file."""
    from wisecrowd.audit.pruning import KINDS
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.parameter_checks import check_choice

    for kind in prune or []:
        check_choice("--prune", kind, KINDS)
    if prune and prune_to is None:
        raise ParameterError("--prune says what to remove; say with --prune-to FILE where to.")
    if prune_to is None:
        return []
    return [kind for kind in KINDS if kind in (prune or ["spammers"])]


def _prune(labels: Annotations, kinds: list[str], unlabelled: str, seed: int) -> Pruned:
    from wisecrowd.audit.part import NotApplicable
    from wisecrowd.audit.pruning import clean
    from wisecrowd.core.exceptions import DataError

    try:
        return clean(labels, kinds, unlabelled=unlabelled, random_state=seed)
    except NotApplicable as reason:
        raise DataError(f"{reason} Leave out --prune-to, or --prune that.") from None


def _write(
    audit: Audit,
    pruned: Pruned | None,
    folder: str | None,
    asked: AuditOptions,
    manifest: Manifest,
    notes: Notes,
    withheld: Withheld | None,
) -> None:
    from wisecrowd.cli.outputs import write_result
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.io.tables import write_table
    from wisecrowd.storage.atomic import atomic_directory, together
    from wisecrowd.storage.manifest import is_own_output, write_manifest

    tables = {}
    if folder is not None:
        tables = {"findings": _findings_table(audit.findings), **audit.tables()}
        if pruned is not None:
            tables["pruned"] = pruned.changes
        if withheld is not None:
            tables = {name: withheld.table(table) for name, table in tables.items()}
    with together():
        if folder is not None:
            own = is_own_output(folder)  # csv files of anybody else must not be lost
            with atomic_directory(folder, is_own_entry=lambda entry: own) as place:
                for name, table in tables.items():
                    write_table(
                        str(place / f"{name}.csv"), table, neutralise_formulas=not asked.raw_csv
                    )
            write_manifest(folder, manifest)
            names = ", ".join(f"{name}.csv" for name in tables)
            note_written(notes, folder, f"wrote {folder} ({names})")
        if pruned is not None:
            write_result(
                pruned.labels.to_dict(), asked.prune_to, manifest, notes, raw=asked.raw_csv,
                estimates=False,
            )  # fmt: skip


def _show(
    audit: Audit,
    pruned: Pruned | None,
    asked: AuditOptions,
    notes: Notes,
    withheld: Withheld | None,
    give: Callable[[Callable[[], dict[str, Any]]], None],
) -> None:
    """Write the findings as JSON if requested, else print them."""
    from wisecrowd.cli.outputs import is_standard, print_text
    from wisecrowd.storage.atomic import when_complete

    if asked.as_json:
        for name, reason in audit.skipped.items():
            notes(f"{name} left out: {reason}")
    elif audit.skipped:
        notes(f"parts left out (--json has the reasons): {', '.join(audit.skipped)}")
    if pruned is not None:
        notes(str(pruned))
    if asked.as_json:
        give(lambda: _document(audit, pruned, notes, withheld))
    elif asked.prune_to is None or not is_standard(asked.prune_to):
        findings = audit.findings if withheld is None else withheld.findings(audit.findings)
        pairs = audit.tables().get("surprising_pairs", {})
        judged = audit.tables().get("workers", {})
        if withheld is not None:
            pairs, judged = withheld.table(pairs), withheld.table(judged)
        when_complete(
            lambda: print_text(
                _findings_text(findings) + _workers_text(judged) + _pairs_text(pairs)
            )
        )
    if withheld is not None and withheld.workers:
        notes(
            f"{len(withheld.workers)} workers with fewer than {withheld.fewest} labels are not "
            "named, so that nobody is known by them"
        )


def _document(
    audit: Audit, pruned: Pruned | None, notes: Notes, withheld: Withheld | None
) -> dict[str, Any]:
    """Return the audit as one object."""
    document = audit.to_dict()
    if pruned is not None:
        document["pruned"] = {**pruned.summary(), "removed": pruned.removed.tolist()}
    if withheld is not None:
        document = _shareable(document, audit, withheld)
        notes.said[:] = map(withheld.text, notes.said)
    return document | {"notes": notes.said}


def _shareable(document: dict[str, Any], audit: Audit, withheld: Withheld) -> dict[str, Any]:
    """Return the audit as tables, whose rows can be left out, instead of arrays by worker."""
    tables = {name: withheld.table(table) for name, table in audit.tables().items()}
    rest = {name: value for name, value in document.items() if name != "parts"}
    made: dict[str, Any] = withheld.anywhere(rest)
    return made | {"tables": tables, "n_withheld": len(withheld.workers)}


def _findings_text(findings: Findings) -> str:
    """Return one block per finding: severity and id, then explanation and remedy."""
    from wisecrowd.cli.terminal import harmless, indented

    if not len(findings):
        return "nothing found\n"
    lines = []
    for found in findings:
        lines.append(f"{found.severity:<6}  {found.id}  (score {found.score:.3g})")
        for sentence in (found.explanation, found.remedy):
            lines += indented(harmless(sentence), 8)
    return "\n".join(lines) + "\n"


def _workers_text(judged: Mapping[str, Any]) -> str:
    """Return the accuracy of the busiest workers by gold, if there is gold."""
    import numpy as np

    from wisecrowd.cli.terminal import harmless, text_table

    if not judged or not len(judged["worker"]):
        return ""
    order = np.argsort(-np.asarray(judged["n_labels"]), kind="stable")[:MOST_JUDGED]
    rows = [
        [
            harmless(str(judged["worker"][n])), int(judged["n_labels"][n]),
            int(judged["n_checked"][n]), f"{judged['accuracy'][n]:.0%}",
            f"{judged['low'][n]:.0%} to {judged['high'][n]:.0%}",
        ]
        for n in order.tolist()
    ]  # fmt: skip
    more = len(judged["worker"]) - len(rows)
    rest = f"and {more} more; -o FOLDER writes them to workers.csv\n" if more else ""
    header = ["worker", "labels", "checked", "accuracy", "95% interval"]
    return f"\nworkers by checked tasks:\n{text_table(header, rows)}\n{rest}"


def _pairs_text(pairs: Mapping[str, Any]) -> str:
    """Return the pairs with the most surprising agreement, one per line, if any is accused."""
    from wisecrowd.cli.terminal import harmless

    if not any(pairs.get("accused", ())):
        return ""
    lines = ["", "most surprising agreement of two workers:"]
    for first, second, shared, equal, expected, z, q, accused in zip(*pairs.values(), strict=True):
        lines.append(
            f"        {harmless(str(first))}, {harmless(str(second))}: {equal:.0f} of {shared:.0f} "
            f"labels equal, {expected:.0f} expected (z = {z:.1f}, q = {q:.2g})"
            + (", accused" if accused else "")
        )
    return "\n".join(lines) + "\n"


def _findings_table(findings: Findings) -> dict[str, Any]:
    import json

    import numpy as np

    rows = [found.to_dict() for found in findings]
    table: dict[str, Any] = {}
    for name in ("severity", "id", "score", "affected", "explanation", "remedy"):
        values = np.empty(len(rows), dtype=object)
        values[:] = [
            json.dumps(row[name], ensure_ascii=False) if name == "affected" else row[name]
            for row in rows
        ]
        table[name] = values.astype(np.float64) if name == "score" else values
    return table
