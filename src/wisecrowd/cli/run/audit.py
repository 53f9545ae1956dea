"""``wisecrowd audit``: problems of a crowd."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wisecrowd.audit.crowd_audit import audit_crowd, audit_plan, check_parts, plan_of
from wisecrowd.cli.options.audit import AuditOptions
from wisecrowd.cli.run.groups import with_groups
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_gold, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    is_standard,
    note_written,
    print_text,
    split_output,
    write_result,
)
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, harmless, indented, text_table
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import check_severity
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.messages.option_spelling import reading_files
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.part import NotApplicable
from wisecrowd.engines.threads import set_threads
from wisecrowd.io.tables import write_table
from wisecrowd.kinds.classes.audit.pruning import KINDS, clean, require_prunable
from wisecrowd.reporting.withholding import FEWEST, Withheld
from wisecrowd.storage.atomic import atomic_directory, together, when_complete
from wisecrowd.storage.manifest import is_own_output, write_manifest

if TYPE_CHECKING:
    from wisecrowd.audit.crowd_audit import Audit, Findings
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.kinds.classes.audit.pruning import Pruned
    from wisecrowd.storage.manifest import Manifest

FOUND = 1  # the exit code of --fail-on

MOST_JUDGED = 20  # workers that a terminal shows, the busiest first


def audit(context: typer.Context, files: list[str], asked: AuditOptions) -> None:
    """Run ``wisecrowd audit``."""
    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    if asked.fail_on is not None:
        check_severity("--fail-on", asked.fail_on)
    check_choice("--unlabelled", asked.unlabelled, ("refuse", "spare", "drop"))
    kinds = _check_pruning(asked.prune, asked.prune_to)
    _check_names(asked.part, asked.reading.declared_type)
    seed = asked.running.seed or 0
    context.with_resource(reading_files(files, asked.reading.options()))
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
        labels = with_groups(read_labels(files, asked.reading, notes), asked.groups)
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
    plan = None if declared is None else audit_plan(get_kind(declared))
    if plan is not None:
        check_parts(parts, plan.parts)


def _check_pruning(prune: list[str] | None, prune_to: str | None) -> list[str]:
    """Return what to remove, in order; nothing without an output file."""
    for kind in prune or []:
        check_choice("--prune", kind, KINDS)
    if prune and prune_to is None:
        raise ParameterError("--prune says what to remove; say with --prune-to FILE where to.")
    if prune_to is None:
        return []
    return [kind for kind in KINDS if kind in (prune or ["spammers"])]


def _prune(labels: Annotations, kinds: list[str], unlabelled: str, seed: int) -> Pruned:
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
