"""Contexts of many tags, and tags that are too many."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core import memory_check
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.sequences.audit.view import sequence_view
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods import bsc, tag_chains
from wisecrowd.kinds.sequences.methods.bsc import previous_tag
from wisecrowd.kinds.sequences.methods.tag_chains import ILLEGAL, no_context
from wisecrowd.kinds.sequences.tag_scheme import TagScheme


@pytest.mark.parametrize("name", ["bio", "plain"])
def test_the_prior_of_many_tags_by_its_definition(monkeypatch, name):
    monkeypatch.setattr(bsc, "MANY_TAGS", 3)
    tags = ("O", "B-a", "I-a", "B-b", "I-b", "B-c", "I-c")
    scheme = TagScheme(name, tags)
    found, plain = previous_tag(scheme), no_context(scheme).prior[0]
    before = np.append(scheme.type_of, -1)[:, None]
    table = np.where(before < 0, 0, np.where(before == scheme.type_of, 1, 2))
    assert np.array_equal(found.table, table)
    for s in range(3):
        for k in range(len(tags)):
            allowed = scheme.legal[table[:, k] == s].any(axis=0)
            wanted = np.where(allowed, plain[k], ILLEGAL) if allowed.any() else plain[k]
            assert np.array_equal(found.prior[s, k], wanted)


def crowd(n_types):
    tags = " ".join(f"B-t{k}" for k in range(n_types))
    return ["a", "a"], ["ann", "bob"], [tags, tags]


@pytest.mark.parametrize("method", ["BSC", "HMMCrowd", "TokenWise"])
def test_too_many_tags_are_refused_before_the_work(monkeypatch, method):
    make = getattr(wc.aggregation, method)
    monkeypatch.setattr(bsc, "no_context", None)
    monkeypatch.setattr(tag_chains, "no_context", None)  # nothing is made for them
    with pytest.raises(DataError, match=r"4001 tags \(of 2000 types\) in 2000 tokens have 32 bill"):
        make().fit(crowd(2000))
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1 << 20)
    with pytest.raises(DataError, match=r"101 tags \(of 50 types\) of 2 workers need .* merge"):
        make().fit(crowd(50))


def test_the_audit_refuses_them_too():
    with pytest.raises(DataError, match="32 billion steps"):
        sequence_view(CrowdSequences.from_arrays(*crowd(2000)))
