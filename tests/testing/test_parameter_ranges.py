from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing.crowds import simulated
from wisecrowd.testing.foundation import maker
from wisecrowd.testing.parameter_ranges import check_parameter_ranges, unsound_parameters

LABELS = simulated(12, 4, 2, 3).labels
X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
FEW = {"epochs": 1, "rounds": 1, "steps": 1, "module": "linear"}


@pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")
@pytest.mark.parametrize("name", method_names("learning"))
def test_learners_take_no_parameter_that_breaks_them(name):
    cls = get_method(name, "learning")
    few = {field.name: FEW[field.name] for field in fields(cls) if field.name in FEW}
    assert list(unsound_parameters(cls(**few), _fit)) == []


def _fit(learner):
    if learner.get_params(deep=False).get("checkpoint") is not None:
        learner.checkpoint = None  # a path may be anything
    return learner.fit(X, LABELS)


def test_the_check_notices_what_it_is_for():
    class Lax(MajorityVote):
        """A vote that checks nothing."""

        def _validate_parameters(self):
            pass

    with pytest.raises(AssertionError, match="smoothing="):
        check_parameter_ranges(maker(Lax))
    faults = "; ".join(unsound_parameters(Lax(), lambda method: method.fit(LABELS)))
    assert re.search(r"smoothing=inf: .*smoothing=None: TypeError", faults)
    check_parameter_ranges(maker(DawidSkene))
