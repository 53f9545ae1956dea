from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.audit.crowd_audit import audit_plan
from wisecrowd.cli.app import build_command
from wisecrowd.core.kinds import KINDS, get_kind
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.kinds.classes.audit.plan import PLAN as CLASSES
from wisecrowd.reporting.plans import plan_of_kind
from wisecrowd.reporting.verdict import CALLS, COMMANDS, OTHER_COMMAND, OTHERS, command_for

FILE = "it's <mine>.csv"


TEMPLATES = {*COMMANDS.values(), OTHER_COMMAND, *(one for some in OTHERS.values() for one in some)}


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_commands_are_understood(template):
    """The shell gives the file back as it is, and the command line knows every option."""
    moments = {"w 7": "2026-05-31"}
    filled = command_for(template, [FILE], ["--task", "image id"], moments=moments)
    command, name, *rest = shlex.split(filled)
    assert command == "wisecrowd"
    assert FILE in rest
    context = build_command().commands[name].make_context(name, rest)
    values = context.params
    assert values.get("method", "dawid-skene") in method_names()
    assert set(values.get("part") or []) <= set(CLASSES.parts)
    if name != "inspect":
        assert values["task"] == "image id"
    if "{drop}" in template:
        assert values["drop_after"] == ["w 7=2026-05-31"]


def test_calls_name_what_there_is():
    for call in CALLS.values():
        path = re.match(r"(wc|labels)\.([\w.]+)", call)
        target = wc if path.group(1) == "wc" else wc.CrowdLabels
        for part in path.group(2).split("."):
            target = getattr(target, part)
        named = re.findall(r'aggregate\(labels, "([^"]+)"', call)
        assert set(named) <= set(method_names())


def test_every_finding_of_the_audit_has_a_command():
    package = Path(wc.__file__).parent
    files = [*package.glob("audit/*.py"), *package.glob("kinds/*/audit/*.py"),
             *package.glob("kinds/*/audit.py")]  # fmt: skip
    source = "".join(path.read_text() for path in files)
    severities = "info|low|medium|high"
    ids = re.findall(rf'"([a-z]+(?:-[a-z]+)*)",\s*"(?:{severities})"', source)
    assert len(ids) > 10
    kinds = [name for name, kind in KINDS.items() if kind.has_part("report")]
    every = {name for kind in kinds for name in plan_of_kind(kind).commands}
    columns = {"bias", "correlation", "expected", "looseness", "ratio", "reliability"}  # then "low"
    assert {name for name in ids if name not in every} <= columns | {"info", "low", "medium"}


@pytest.mark.parametrize("kind", ["ordered", "numbers", "pairs"])
def test_commands_of_other_kinds_are_understood(kind):
    plan = plan_of_kind(kind)
    for finding in plan.commands:
        moments = {"w": "5"}
        template = plan.commands[finding]
        given = command_for(template, [FILE], ["--type", kind], moments=moments)
        command, name, *rest = shlex.split(given)
        assert command == "wisecrowd"
        assert FILE in rest
        values = build_command().commands[name].make_context(name, rest).params
        if name == "inspect":
            continue
        assert values["type"] == kind
        if "-m" in rest:
            model = get_method(values["method"])
            assert model.takes == kind or (kind, model.takes) == ("ordered", "labels")
            for parameter in values.get("parameter") or []:
                assert parameter.partition("=")[0] in model._parameter_names()
        parts = set(audit_plan(get_kind(kind)).parts)
        assert set(values.get("part") or []) <= parts
    for call in plan.calls.values():
        named = re.findall(r'aggregate\(labels, "([^"]+)"', call)
        assert all(get_method(one).takes in (kind, "labels") for one in named)


def test_a_fit_that_did_not_converge_is_repeated_with_its_method():
    command = command_for(COMMANDS["not-converged"], ["a.csv"], method="glad")
    assert command == "wisecrowd aggregate a.csv -m glad -p max_iter=1000 -o labels.csv"
    assert "max_iter" in get_method("glad")._parameter_names()
