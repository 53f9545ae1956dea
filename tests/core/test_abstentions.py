"""Names of classes that look like abstentions get a hint; other names do not."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, aggregate
from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit import audit_crowd
from wisecrowd.core.abstentions import abstention_hint, is_abstention
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.families.pool_findings import unsupported_finding

LIKE = [
    "unsure", "Unsure", "UNSURE", "not sure", "not_sure", "don't know", "dont_know", "Don’t know",
    "I don't know", "do-not-know", "idk", "n/a", "N.A.", "NA", "not applicable",
    "none of the above", "None of these", "cannot tell", "can't tell", "cant_tell",
    "can not say", "skip", "skipped", "unknown", "undecided", "no opinion",
    "prefer not to say", "abstain",
]  # fmt: skip
UNLIKE = [
    "other", "none", "yes", "no", "maybe", "neutral", "Nathan", "surely", "pass", "fail",
    "unknown planet", "skipper", "sure", "knows", "a", "", 0, 1, None, 2.5, True,
]  # fmt: skip


@pytest.mark.parametrize("name", LIKE)
def test_abstentions(name):
    assert is_abstention(name)


@pytest.mark.parametrize("name", UNLIKE)
def test_answers(name):
    assert not is_abstention(name)


def test_the_hint_is_an_option_that_exists():
    assert abstention_hint(["not sure"]) == "abstain=['not sure']"
    with shell_spelling():
        assert abstention_hint(["not sure", "n/a"]) == "--abstain 'not sure' --abstain n/a"


def crowd(unsure="unsure"):
    rng = np.random.default_rng(0)
    label = np.array(["yes", "no", unsure], dtype=object)[rng.choice(3, 120, p=[0.5, 0.3, 0.2])]
    return CrowdLabels.from_arrays(np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30), label)


def test_fits_and_audits_have_a_low_finding():
    fit = DawidSkene().fit(crowd())
    (finding,) = (found for found in fit.findings_ if found.id == "abstention-class")
    assert (finding.severity, finding.affected) == ("low", ("unsure",))
    assert "abstain=['unsure']" in finding.remedy
    assert "abstention-class" in {
        found.id for found in audit_crowd(crowd(), parts=["fit"]).findings
    }
    assert finding.score == pytest.approx(np.mean(crowd().label == 1))


@pytest.mark.parametrize("name", ["other", "maybe"])
def test_other_names_have_none(name):
    found = DawidSkene().fit(crowd(name)).findings_
    assert "abstention-class" not in {finding.id for finding in found}


def test_an_unsupported_class_is_named():
    labels = crowd()
    unsupported = labels.classes == "unsure"
    (finding,) = unsupported_finding(labels, [], unsupported)
    assert "'unsure' looks like an abstention" in finding.remedy
    assert "abstain=['unsure']" in finding.remedy
    (finding,) = unsupported_finding(labels, [], labels.classes == "no")
    assert "looks like" not in finding.remedy
    assert "abstain=['no']" in finding.remedy


def test_what_is_declared_does_not_win():
    labels = crowd()
    rows = labels.to_dict()
    table = aggregate(
        CrowdLabels.from_arrays(rows["task"], rows["worker"], rows["label"], abstain=["unsure"])
    )
    assert "unsure" not in table["label"].to_numpy().tolist()
