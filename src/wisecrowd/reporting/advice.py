"""Advice: for each finding the first remedy that holds on these data, and what it would change."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.kinds import kind_of
from wisecrowd.io.pseudonyms import PSEUDONYM
from wisecrowd.kinds.classes.audit.pruning import mask_of, spared_sentence
from wisecrowd.reporting.display import count, percent, shown
from wisecrowd.reporting.plans import plan_of_kind
from wisecrowd.reporting.trials import Action, Trial, Trials
from wisecrowd.reporting.verdict import MOST_AFFECTED, OTHER_COMMAND, OTHERS, PRUNED, command_for

MOST_MOMENTS = 10  # workers whom one command drops after a time

SAME_GROUP = ("collusion", "dependent-group")  # findings that may be about a group of copies
# What to do about a finding if no remedy for these labels holds.
KEPT = {
    "clones": "Ask whether they share answers; the present labels may stay.",
    "collusion": "Ask them, and give them different tasks; the present labels may stay.",
    "dependent-group": "Give them different tasks; the present labels may stay.",
    "dependent-labels": "Look for workers who copy; the present labels may stay.",
    "drift": "Ask what has changed before they get more tasks; the present labels may stay.",
}
NO_MORE = "Give them no more tasks"
LEAVE_OUT = f"Leave their labels out, and {NO_MORE[0].lower()}{NO_MORE[1:]}."
SCORE = ", which is the score"  # the page shows no scores
KEPT_OTHERWISE = "Keep the result, and review the rows of evidence."


@dataclass(frozen=True)
class Context:
    """What all steps of a report share: the study, its trials and the files."""

    study: Any
    trials: Trials
    files: Sequence[str]
    reading: Sequence[str]

    @property
    def method(self) -> str:
        """Method that the default method chose, or the reported one."""
        name: str = getattr(self.study.fit, "chosen_", self.study.method)
        return name

    @property
    def kind(self) -> str:
        """Kind of the labels."""
        return kind_of(self.study.labels).name


def next_steps(
    study: Any, files: Sequence[str], reading: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return all findings, most severe first, with the remedy that holds and its effect.

    A remedy that changes labels is tried on the data (:mod:`wisecrowd.reporting.trials`). One that
    does not score better on known classes, or without enough of them does not predict held-out
    labels better, is replaced by the next one, in the end by one that only shows the evidence.
    """
    context = Context(study, Trials(study), files, reading)
    return [step_of(found, context) for found in study.audit.findings]


def step_of(found: Finding, context: Context) -> dict[str, Any]:
    """Return a finding as plain data, with its command and what that would change."""
    moments = _moments(found, context)
    tried: list[tuple[Action, Trial | None]] = []
    template, action, trial = OTHER_COMMAND, Action(), None
    for template in _templates(found, context, moments):
        action = Action.of(template, moments, context.method)
        if not action.changes_labels or _is_present(action, context):
            trial = None
            break
        trial = context.trials.of(action, _concerned(found, context))
        must_improve = action.removes == ("spammers",)
        if trial is not None and (trial.improves if must_improve else trial.holds):
            break
        tried.append((action, trial))
    else:
        template, action, trial = OTHER_COMMAND, Action(), None
    return {
        "id": found.id,
        "severity": found.severity,
        "score": float(found.score),
        "affected": [shown(value) for value in found.affected[:MOST_AFFECTED]],
        "n_affected": len(found.affected),
        "explanation": shown(found.explanation.replace(SCORE, "")),
        "remedy": shown(_remedy(found, context, trial, tried)),
        "examples": [{name: shown(text) for name, text in row.items()} for row in found.examples],
        "command": _spelled(template, action, found, context, moments),
        "effect": effect_of(action, trial),
        "declined": [shown(_declined(one, result)) for one, result in tried],
    }  # fmt: skip


def _remedy(
    found: Finding, context: Context, trial: Trial | None, tried: Sequence[tuple[Action, Any]]
) -> str:
    """Return the remedy; its numbers are those of the trial, which the effect shows."""
    if found.id in PRUNED and trial is not None and trial.n_workers:
        return LEAVE_OUT
    if tried and trial is None:
        return (
            _why_kept(context, tried[0][1])
            if found.id in PRUNED
            else KEPT.get(found.id, KEPT_OTHERWISE)
        )
    if found.id in PRUNED:  # the audit's own numbers are those of another method
        return f"{found.remedy.partition(': ')[0].rstrip('.')}. {NO_MORE}."
    return found.remedy


def _why_kept(context: Context, trial: Trial | None) -> str:
    """Return what to do about spammers whose removal does not improve the labels."""
    if trial is not None and trial.n_changed == 0:
        return f"{NO_MORE}; no label depends on theirs, so the present labels may stay."
    law = getattr(context.study.fit, "_label_law", None)
    if law is not None and law() is not None:
        return (
            f"{NO_MORE}; {context.study.method} already discounts them, so their labels may stay."
        )
    return f"{NO_MORE}; their labels may stay, because removing them does not help."


# ------------------------------------------------------------------------------------- candidates


def _templates(found: Finding, context: Context, moments: Mapping[Any, Any]) -> list[str]:
    """Return the remedies of a finding, the preferred one first."""
    commands: Mapping[str, str] = plan_of_kind(context.kind).commands
    key = _key_of(found, context)
    first = commands.get(key, OTHER_COMMAND)
    rest = OTHERS.get(found.id, ()) if context.study.labels.of_classes else ()
    if "{drop}" in first and not moments:
        return [*rest]
    if found.id in SAME_GROUP and _are_copies(found, context):  # one remedy for one group
        return [commands["clones"], first, *rest]
    return [first, *(rest if key == found.id else [])]


def _key_of(found: Finding, context: Context) -> str:
    """Return the key of the command: for classes a trial decides whether to prune spammers."""
    spam = found.id in PRUNED and not found.remedy.startswith("Prune")
    spam = spam and not context.study.labels.of_classes
    return "kept-spammers" if spam else found.id


def _are_copies(found: Finding, context: Context) -> bool:
    """Return whether all workers of a finding are in one group of copies."""
    part = context.study.audit.parts.get("clones")
    groups = [] if part is None else part.groups
    return any(set(found.affected) <= set(group.tolist()) for group in groups)


def _moments(found: Finding, context: Context) -> dict[Any, Any]:
    """Return when workers with drift became worse; nothing if their ids are pseudonyms."""
    part = context.study.audit.parts.get("drift")
    if found.id != "drift" or part is None:
        return {}
    moment = dict(zip(part.workers.tolist(), part.moment, strict=True))
    named = {worker: str(moment[worker]) for worker in found.affected[:MOST_MOMENTS]}
    hidden = any(isinstance(one, str) and PSEUDONYM.fullmatch(one) for one in named)
    return {} if hidden else named


def _concerned(found: Finding, context: Context) -> Any:
    """Return the workers (n_workers,) whom a finding names; None if it names no workers."""
    about: Sequence[str] = plan_of_kind(context.kind).worker_findings
    if found.id not in about or found.id == "drift" or not found.affected:
        return None
    try:
        return mask_of(list(found.affected), context.study.labels)
    except ParameterError:
        return None


def _is_present(action: Action, context: Context) -> bool:
    """Return whether an action is the reported method as it is."""
    same = action.method == context.study.method and not action.removes and not action.moments
    if not same:
        return False
    params = context.study.fit.get_params(deep=False)
    return all(params.get(name) == value for name, value in action.parameters.items())


# ------------------------------------------------------------------------------------- sentences


def _spelled(
    template: str, action: Action, found: Finding, context: Context, moments: Mapping[Any, Any]
) -> str:
    """Return the shell command, or the Python call if there is no file."""
    if context.files:
        return command_for(
            template, context.files, context.reading, method=context.method,
            reported=context.study.method, moments=moments,
        )  # fmt: skip
    plan = plan_of_kind(context.kind)
    calls, commands = plan.calls, plan.commands
    key = _key_of(found, context)
    if not action.moments and key in calls and template == commands.get(key):
        call: str = calls[key]
        return call
    return python_call(template, action, context.study.method)


def python_call(template: str, action: Action, reported: str = "auto") -> str:
    """Return the Python call that does the same as a command; ``reported`` is the present method.

    Examples
    --------
    >>> template = "audit {file} --part drift -o audit"
    >>> python_call(template, Action())
    "wc.audit.audit_crowd(labels, parts=['drift']).tables()"
    >>> python_call("", Action(moments={"w": "5.0"}))
    "wc.audit.drop_after(labels, {'w': '5.0'})"
    """
    if action.removes:
        kinds = list(action.removes)
        return f"wc.audit.clean(labels, {kinds}, unlabelled={action.unlabelled!r}).labels"
    if action.moments:
        return f"wc.audit.drop_after(labels, {dict(action.moments)})"
    if action.method is not None:
        more = "".join(f", {name}={value!r}" for name, value in action.parameters.items())
        return f'wc.aggregate(labels, "{action.method}"{more})'
    words = shlex.split(re.sub(r"[{}]", "", template))
    if words[:1] == ["aggregate"] and not action.calibrates:
        return f'wc.aggregate(labels, "{reported}")'
    if words[:1] == ["compare"]:
        return "wc.compare(labels)"
    if action.calibrates:
        return "wc.audit.find_temperature(labels)"
    parts = [value for word, value in itertools.pairwise(words) if word == "--part"]
    given = f", parts={parts}" if parts else ""
    return f"wc.audit.audit_crowd(labels{given}).tables()"


def effect_of(action: Action, trial: Trial | None) -> dict[str, Any]:
    """Return what a command changes, as numbers and as one text."""
    if trial is None:
        return {"changes": False, "text": _no_change(action)}
    held_out = None
    if np.isfinite(trial.score_change) and trial.score_error > 0:
        held_out = {"change": trial.score_change, "error": trial.score_error}
    return {
        "changes": True,
        "text": " ".join(_sentences(action, trial)),
        "n_changed": None if trial.n_changed < 0 else trial.n_changed,
        "n_tasks": trial.n_tasks,
        "sampled": trial.sampled,
        "agreement": trial.agreement,
        "accuracy": None if trial.measured is None else {
            "before": trial.measured[0], "after": trial.measured[1], "from": "known classes",
        },
        "held_out": held_out,
        "n_workers": trial.n_workers,
        "n_labels": trial.n_labels,
        "cost": trial.cost if trial.n_labels else None,
        "spared": [shown(one) for one in trial.spared],
    }  # fmt: skip


def _no_change(action: Action) -> str:
    if action.needs:
        return f"The effect depends on {action.needs}, which you make first: task, label."
    if action.calibrates:
        return "Changes no labels, only their confidences."
    return "Changes no labels."


def _sentences(action: Action, trial: Trial) -> list[str]:
    """Return the effect of a command in sentences."""
    said = [f"{_changed(trial)}."]
    if trial.n_labels:
        paid = "" if not trial.cost else f", which cost {trial.cost:.2f}"
        who = f"{trial.n_workers} worker{'s' if trial.n_workers != 1 else ''} and "
        said.append(
            f"It leaves out {who if trial.n_workers else ''}{count(trial.n_labels)} labels{paid}."
        )
    if trial.spared:
        named = np.empty(len(trial.spared), dtype=object)
        named[:] = trial.spared
        said.append(f"{shown(spared_sentence(named))}.")
    if trial.measured is not None:
        first, second = (percent(value) for value in trial.measured)
        said.append(
            f"Accuracy {first} before, {second} after, measured on known classes{_losses(trial)}."
        )
    said.append(f"{_held_out(trial)}.")
    if action.removes:
        said.append("Then aggregate cleaned.csv.")
    return said


def _changed(trial: Trial) -> str:
    where = " in a sample of the tasks" if trial.sampled else ""
    if trial.n_changed >= 0:
        n = count(trial.n_changed)
        return f"Changes {n} of {count(trial.n_tasks)} labels{where}"
    return f"The results before and after agree to {trial.agreement:.3f}{where}"


def _held_out(trial: Trial) -> str:
    if not np.isfinite(trial.score_change):
        return "No label could be held out to check it"
    if trial.score_error == 0 and trial.score_change == 0:
        return "Held-out labels are predicted as before"
    how = "better" if trial.score_change > 0 else "worse"
    if abs(trial.score_change) <= trial.score_error:
        how = "as well as before, within the error"
    support = "" if trial.support is None else f"; {trial.support}"
    return (
        f"Held-out labels are predicted {how}: {trial.score_change:+.4f} ± {trial.score_error:.4f} "
        f"in log-probability{support}"
    )


def _losses(trial: Trial) -> str:
    """Return what the known classes say about the probabilities."""
    if trial.known is None:
        return ""
    before, after = trial.known.before, trial.known.after
    return (
        f", with log loss {np.mean(before.loss):.3f} before and {np.mean(after.loss):.3f} after; "
        f"confidence is {percent(before.gap)} from accuracy before and {percent(after.gap)} after"
    )


def _declined(action: Action, trial: Trial | None) -> str:
    """Return why a remedy is not advised."""
    what = (
        f"Removing {' and '.join(action.removes)}" if action.removes
        else "Dropping their later labels" if action.moments
        else f"Using {action.method}"
    )  # fmt: skip
    if trial is None:
        return f"{what} could not be tried on these data."
    if trial.n_changed == 0:
        return f"{what} was tried. {_changed(trial)}."
    if trial.known is not None and trial.decided is False:
        return (
            f"{what} was tried. {_changed(trial)}. On {count(trial.known.n)} known classes it is "
            f"not better: accuracy {percent(trial.known.before.accuracy)} before, "
            f"{percent(trial.known.after.accuracy)} after{_losses(trial)}."
        )
    if np.isfinite(trial.score_change) and trial.score_change > 0:
        why = "which is too little to be sure"
    else:
        why = "so it is not advised"
    return f"{what} was tried. {_changed(trial)}. {_held_out(trial)}, {why}."
