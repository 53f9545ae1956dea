"""``wisecrowd.report``: one HTML file about a crowd, and its content as plain data.

The page is self-contained, from templates with escaping on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import MissingDependencyError
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.plain_values import plain
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.reporting import display
from wisecrowd.reporting.advice import next_steps
from wisecrowd.reporting.changes import SCHEMA, VERSION, changes_since, require_summary
from wisecrowd.reporting.check_offer import list_to_check, offered_rows
from wisecrowd.reporting.health import reproduction
from wisecrowd.reporting.markdown import markdown_of
from wisecrowd.reporting.plans import report_plan
from wisecrowd.reporting.sections import Section, Summary, sections_of
from wisecrowd.reporting.tasks import check_task_url, relabel_rows, with_examples
from wisecrowd.reporting.withholding import Withheld
from wisecrowd.storage.atomic import atomic_write, together
from wisecrowd.storage.manifest import Manifest, write_manifest

CARRIED = ("schema", "version", "title", "verdict", "next", "reproduce")


def summarize(labels: Any, **options: Any) -> Summary:
    """Return the content of a report on these labels, ready for JSON.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers, CrowdPairs, or data of any form accepted for classes
    **options
        Options of :func:`wisecrowd.reporting.study.study_crowd`: ``method``, ``fit``, ``gold``,
        ``truth``, ``options``, ``random_state``.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    >>> summary = summarize(crowd.labels)
    >>> summary["schema"], summary["version"], summary["verdict"]["n_labels"]
    ('wisecrowd-report', 2, 300)
    """
    return summary_of(study_of(labels, **options))


def study_of(labels: Any, **options: Any) -> Any:
    """Fit and audit data of any kind for a report."""
    data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    return report_plan(data).study(data, **options)


def summary_of(
    study: Any,
    *,
    files: Sequence[str] = (),
    reading: Sequence[str] = (),
    manifest: Manifest | None = None,
    title: str | None = None,
) -> Summary:
    """Return the summary of a study; see :func:`wisecrowd.reporting.report` for the options."""
    found: Summary = {
        "schema": SCHEMA,
        "version": VERSION,
        "title": title or (f"Crowd report: {', '.join(files)}" if files else "Crowd report"),
    }
    plan = report_plan(study.labels)
    for name, function in plan.content.items():
        part = function(study)
        if part is None and name in plan.optional:
            continue
        found[name] = part
        checked = getattr(study, "checked", None)
        if name == "verdict" and checked is not None:
            part["checked"] = {"text": " ".join([checked.sentence, *checked.notes]),
                               **{one: plain(values)[0] for one, values
                                  in checked.tables()["accuracy"].items()}}  # fmt: skip
        if name == "verdict":
            found["next"] = next_steps(study, files, reading)
    if study.known_from is None and (offered := list_to_check(study, files, reading)):
        found["check"] = offered
    found["reproduce"] = reproduction(study, manifest, files, study.seed)
    kind = kind_of(study.labels)
    if not kind.usual:
        found["kind"] = kind.name
    made: Summary = plain(found)
    return made


Table = dict[str, Any]
_TABLES = ("workers", "tasks", "ranking")


@dataclass(frozen=True, eq=False)
class Report:
    """A report in memory, which notebooks display.

    Attributes
    ----------
    summary : dict
        The complete content, ready for JSON; ``summary["version"]`` is the version of its format.
    whole_tables : mapping of "workers" and "tasks", or "ranking", to table
        Complete tables of which the page shows only a part.
    manifest : Manifest
    """

    summary: Summary
    whole_tables: dict[str, Table]
    manifest: Manifest
    _pages: dict[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        found = self.summary["verdict"]
        return f"Report({found['n_tasks']} tasks, {found['n_workers']} workers)"

    @property
    def html(self) -> str:
        """The page, without references to files with complete tables."""
        if "page" not in self._pages:
            self._pages["page"] = render(self.summary)
        return self._pages["page"]

    @property
    def markdown(self) -> str:
        """The summary as GitHub-flavoured Markdown."""
        return markdown_of(self.summary)

    def save(self, path: str | os.PathLike[str], *, tables: bool = False) -> list[Path]:
        """Write the page atomically, with its manifest.

        Parameters
        ----------
        path : path
        tables : bool
            Whether the complete tables that the page truncates are written beside it.

        Returns
        -------
        list of Path
            Written files: the page, then for instance ``report.workers.parquet``.
        """
        from wisecrowd.io.tables import write_table

        target = Path(path)
        beside = {
            name: file
            for name, file in tables_beside(target).items()
            if tables
            and name in self.whole_tables
            and self.summary[name]["n_shown"] < self.summary[name]["total"]
        }
        page = render(self.summary, {name: file.name for name, file in beside.items()})
        with together():
            for name, file in beside.items():
                write_table(file, self.whole_tables[name])
                write_manifest(file, self.manifest)
            with atomic_write(target) as stream:
                stream.write(page)
            write_manifest(target, self.manifest)
        return [target, *beside.values()]

    def _repr_html_(self) -> str:
        return (
            '<iframe title="Crowd report" sandbox="allow-scripts" width="100%" height="640" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )


def tables_beside(page: str | os.PathLike[str]) -> dict[str, Path]:
    """Return the paths of the tables that a page may truncate.

    Examples
    --------
    >>> tables_beside("report.html")["workers"].name
    'report.workers.parquet'
    """
    target = Path(page)
    return {name: target.with_name(f"{target.stem}.{name}.parquet") for name in _TABLES}


def report(
    labels: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    method: str | Aggregator | None = None,
    fit: Any = None,
    gold: Any = None,
    truth: Any = None,
    checked: Any = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    title: str | None = None,
    random_state: int = 0,
    files: Sequence[str] = (),
    reading: Sequence[str] = (),
    manifest: Manifest | None = None,
    withhold_below: int = 0,
    against: Summary | None = None,
    tasks: Any = None,
    task_url: str | None = None,
    tables: bool = False,
) -> Report:
    """Create a report on a crowd, and write it if a path is given.

    The report is one HTML file that needs no network. It shows what the labels claim, next
    steps, workers, hard tasks, confused classes, suspected collusion, a comparison of methods,
    calibration, the value of more labels, and how to reproduce it; groups of tasks if these have
    attributes. Needs the extra ``report``.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers, CrowdPairs, or data of any form accepted for classes
    path : path, optional
        File of the page; its manifest is written next to it.
    method : str or unfitted method, optional
        Method whose labels are reported; by default that of the kind, "auto" for classes.
    fit : fitted method, optional
        A fit of these labels, used instead of ``method``; it may have learned from features.
    gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        Known classes, which the fit uses; its accuracy without them is shown too.
    truth : as gold
        Known classes that are used only to score the fit.
    checked : frame, optional
        A check list with the answers of a person, used instead of truth: see
        :func:`wisecrowd.truth.check_list`. Without any known answers the page offers such a list.
    options : mapping of part of the audit to keywords, optional
        For instance ``{"group-gaps": {"positive": "yes"}}``, the class whose rates by group of
        tasks the page shows if the tasks have attributes.
    title : str, optional
    random_state : int
    files, reading : sequences of str
        Source files of the labels, and options to read them. With files the page suggests shell
        commands, otherwise Python calls.
    manifest : Manifest, optional
        Manifest of the report; by default derived from the method.
    withhold_below : int
        Workers with fewer labels are not named, for reports that are shared. Workers must have
        pseudonyms; pass ``wisecrowd.pseudonymize(labels, key)``.
    against : dict, optional
        Summary of an earlier report; the page then shows what changed since.
    tasks : path, table, or mapping from task to text, optional
        What the tasks look like: a column of ids, and one of texts or of addresses of files. The
        page shows texts, and links to files, which it never loads.
    task_url : str, optional
        Address of a task on its platform, such as "https://host/tasks/{task}".
    tables : bool
        Whether complete tables that the page truncates are written next to it, as parquet.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    >>> made = report(crowd.labels)
    >>> made, made.html.startswith("<!doctype html>")
    (Report(60 tasks, 6 workers), True)
    """
    if against is not None:
        require_summary(against, "against")
    check_task_url(task_url)
    study = study_of(
        labels, method=method, fit=fit, gold=gold, truth=truth, checked=checked,
        options=options, random_state=random_state,
    )  # fmt: skip
    withheld = Withheld.below(study.labels, withhold_below) if withhold_below else None
    described = manifest or Manifest.describe(
        method=study.method, parameters=study.fit.get_params(deep=False), seed=random_state
    )
    summary = summary_of(study, files=files, reading=reading, manifest=described, title=title)
    summary = with_examples(summary, study.labels, tasks, task_url, files)
    whole = {"workers": study.fit.worker_columns()}
    if "ranking" in summary:
        whole["ranking"] = study.fit.main_columns()
    elif "tasks" in summary:
        whole["tasks"] = study.fit.task_columns()
    if withheld is not None:
        summary = withheld.summary(summary)
        whole["workers"] = withheld.table(whole["workers"])
    if against is not None:  # compared last, so that no withheld worker is named
        summary = summary | {"changes": changes_since(against, summary)}
    made = Report(summary, whole, described)
    if path is not None:
        made.save(path, tables=tables)
    return made


# Data for programs that the page contains; tables are only in the summary.


def render(summary: Summary, tables: dict[str, str] | None = None) -> str:
    """Render a summary as a page.

    Parameters
    ----------
    summary : dict
        Result of :func:`wisecrowd.reporting.summarize`, or the same read from JSON.
    tables : dict, optional
        Names of files with complete tables that the page truncates: "workers", "tasks".
    """
    carried = {name: summary[name] for name in CARRIED}
    return page_of(summary, sections_of(summary), carried, relabel_rows(summary), tables)


def page_of(
    summary: Summary,
    sections: Sequence[Section],
    carried: Summary,
    relabel: Any = None,
    tables: dict[str, str] | None = None,
) -> str:
    """Return the page of some sections.

    Parameters
    ----------
    summary : dict
        Content with at least ``title`` and ``reproduce``.
    sections : sequence of Section
    carried : dict
        Content that the page contains for programs.
    relabel : optional
        Rows of tasks to label again, which the page offers as a file.
    tables : dict, optional
        Names of files with complete tables.
    """
    environment = _environment()
    carried = _cut(carried)
    if relabel is not None:
        carried["relabel"] = relabel
    check = summary.get("check")
    if check is not None:
        carried["check"] = offered_rows(check)
    style, script = _source("style.css"), _source("script.js")
    page: str = environment.get_template("page.html.jinja").render(
        summary=summary,
        sections=sections,
        tables=tables or {},
        to_check=0 if check is None else check["n"],
        check_command="" if check is None else check["command"],
        style=_raw(style),
        script=_raw(script),
        policy=content_policy(style, script),
        carried=_raw(embedded_json(carried)),
    )
    return page


def content_policy(style: str, script: str) -> str:
    """Return a content security policy that allows only this style and this script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element: no text in it can end the element.

    Examples
    --------
    >>> print(embedded_json({"id": "</script><!--"}))
    {"id":"\u003c/script\u003e\u003c!--"}
    """
    plain = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return plain


def _cut(value: Any) -> Any:
    """Shorten the texts in plain data to the maximum length of a sentence."""
    if isinstance(value, str):
        return display.shorten(value, display.SENTENCE)
    if isinstance(value, dict):
        return {_cut(key): _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _source(name: str) -> str:
    return files("wisecrowd.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _raw(content: str) -> Any:
    """Mark trusted text as safe: our own files and escaped JSON, and nothing else."""
    from markupsafe import Markup

    return Markup(content)


def _environment() -> Any:
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "The report needs jinja2; install it with pip install 'wisecrowd[report]'."
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": display.count,
        "number": display.number,
        "heat": lambda percent: f"h{min(10, round(percent / 10))}",
        "percent": display.percent,
        "shorten": display.shorten,
        "sentence": lambda value: display.shorten(value, display.SENTENCE),
        "tooltip": lambda value: display.shorten(value, display.TITLE),
    }
    environment.globals["short"] = display.SHORT
    return environment
