from __future__ import annotations

import re
import shlex

import pytest

import wisecrowd as wc
from wisecrowd.audit.crowd_audit import PARTS
from wisecrowd.audit.plans import load
from wisecrowd.cli.app import build_command
from wisecrowd.core.findings import Finding
from wisecrowd.core.kinds import KINDS, get_kind
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.reporting.plans import plan_of_kind
from wisecrowd.reporting.verdict import CALLS, COMMANDS, _step, command_for

FILE = "it's <mine>.csv"


@pytest.mark.parametrize("finding", [*COMMANDS, "a-finding-of-tomorrow"])
def test_commands_are_understood(finding, tmp_path):
    """The shell gives the file back as it is, and the command line knows every option."""
    command, name, *rest = shlex.split(command_for(finding, [FILE], ["--task", "image id"]))
    assert command == "wisecrowd"
    assert FILE in rest
    context = build_command().commands[name].make_context(name, rest)
    values = context.params
    assert values.get("method", "dawid-skene") in method_names()
    assert set(values.get("part") or []) <= set(PARTS)
    if name != "inspect":
        assert values["task"] == "image id"


@pytest.mark.parametrize(("remedy", "prunes"), [("Prune them.", True), ("Keep them.", False)])
def test_spammers_are_pruned_only_if_the_remedy_says_so(remedy, prunes):
    found = Finding("spammers", "medium", 0.1, ("w",), "Random.", remedy)
    assert ("--prune-to" in _step(found, [FILE], (), "dawid-skene")["command"]) == prunes


def test_calls_name_what_there_is():
    for call in CALLS.values():
        path = re.match(r"(wc|labels)\.([\w.]+)", call)
        target = wc if path.group(1) == "wc" else wc.CrowdLabels
        for part in path.group(2).split("."):
            target = getattr(target, part)
        named = re.findall(r'aggregate\(labels, "([^"]+)"', call)
        assert set(named) <= set(method_names())


def test_every_finding_of_the_audit_has_a_command():
    from pathlib import Path

    import wisecrowd.audit.crowd_audit as audit

    source = "".join(path.read_text() for path in Path(audit.__file__).parent.glob("*.py"))
    severities = "info|low|medium|high"
    ids = re.findall(rf'"([a-z]+(?:-[a-z]+)*)",\s*"(?:{severities})"', source)
    assert len(ids) > 10
    kinds = [name for name, kind in KINDS.items() if kind.report]
    every = {name for kind in kinds for name in load(plan_of_kind(kind).commands)}
    columns = {"bias", "correlation", "expected", "looseness", "ratio", "reliability"}  # then "low"
    assert {name for name in ids if name not in every} <= columns | {"info", "low", "medium"}


@pytest.mark.parametrize("kind", ["ordered", "numbers", "pairs"])
def test_commands_of_other_kinds_are_understood(kind):
    plan = plan_of_kind(kind)
    for finding in load(plan.commands):
        given = command_for(finding, [FILE], ["--type", kind], kind=kind)
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
        parts = set(load(get_kind(kind).audit).parts)
        assert set(values.get("part") or []) <= parts
    for call in load(plan.calls).values():
        named = re.findall(r'aggregate\(labels, "([^"]+)"', call)
        assert all(get_method(one).takes in (kind, "labels") for one in named)


def test_spammers_of_other_kinds_are_pruned_only_if_the_remedy_says_so():
    for kind, name in (("numbers", "spammers"), ("pairs", "adversaries")):
        for remedy, prunes in (("Prune them.", True), ("Keep them.", False)):
            found = Finding(name, "medium", 0.1, ("w",), "Random.", remedy)
            step = _step(found, [FILE], (), "crowd-bt", kind)
            assert ("--prune-to" in step["command"]) == prunes


def test_a_fit_that_did_not_converge_is_repeated_with_its_method():
    command = command_for("not-converged", ["a.csv"], method="glad")
    assert command == "wisecrowd aggregate a.csv -m glad -p max_iter=1000 -o labels.csv"
    assert "max_iter" in get_method("glad")._parameter_names()
