"""Models whose arrays and scalars were changed by somebody who also mended the digests."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from wisecrowd.aggregation import (
    MACE,
    BeliefPropagation,
    CommunityBCC,
    DawidSkene,
    GroupAwareDawidSkene,
    MajorityVote,
    MeanField,
    MinimaxEntropy,
    OneCoin,
    OneVsRest,
)
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.core.saved_attributes import SavedArray
from wisecrowd.learning import BayesDGC, CrowdLayer, MaxMIG, TwoStage
from wisecrowd.storage.methods import save
from wisecrowd.testing.crowds import simulated
from wisecrowd.testing.forged_models import accepted_forgeries

SMALL = simulated(24, 5, 3, 4).labels
FEW = {"epochs": 1, "rounds": 1, "steps": 1}
X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)


def assert_all_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert accepted_forgeries(fitted, tmp_path / "model") == []


@pytest.mark.parametrize("name", method_names("learning"))
def test_forged_learners_are_refused(name, tmp_path):
    cls = get_method(name, "learning")
    few = {field.name: FEW[field.name] for field in fields(cls) if field.name in FEW}
    assert_all_refused(cls(**few).fit(X, SMALL), tmp_path)


SPECIAL = {
    "em": MACE(method="em"),
    "given class prior": CommunityBCC(class_prior=[0.5, 0.3, 0.2]),
    "groups": GroupAwareDawidSkene(groups=2),
    "no task logits": MinimaxEntropy(task_penalty=np.inf),
    "fitted prior": MeanField(prior=np.full((3, 3), 2.0)),
    "one of three": OneVsRest("mace"),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_forged_variants_are_refused(name, tmp_path):
    assert_all_refused(SPECIAL[name].fit(SMALL), tmp_path)


def test_forged_posteriors_of_many_classes_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    many = CrowdLabels.from_matrix(rng.integers(0, 3000, (30, 4)), classes=range(3000))
    for number, method in enumerate((MajorityVote(), OneCoin())):
        fitted = method.fit(many)
        assert hasattr(fitted.probas_, "tocsr")
        fitted.save(tmp_path / str(number))
        assert accepted_forgeries(fitted, tmp_path / str(number)) == []


@pytest.mark.parametrize(
    "learner",
    [
        CrowdLayer(epochs=1, kind="vector"),
        CrowdLayer(epochs=1, kind="scalar"),
        MaxMIG(epochs=1, aggregator=None, selection="last"),
        TwoStage(epochs=1, selection="crowd", refit=False),
        BayesDGC(epochs=2, selection="crowd"),
    ],
    ids=repr,
)
def test_forged_learners_of_other_options_are_refused(learner, tmp_path):
    assert_all_refused(learner.fit(X, SMALL), tmp_path)


def test_an_attribute_that_nobody_declared_is_not_saved(tmp_path):
    fitted = DawidSkene().fit(SMALL)
    fitted.surprise_ = np.zeros(3)
    with pytest.raises(TypeError, match="DawidSkene must declare surprise_"):
        save(fitted, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_every_declared_array_names_axes_and_values_that_exist():
    for kind in ("aggregation", "learning"):
        for name in method_names(kind):
            for one in get_method(name, kind)()._saved_attributes().values():
                if isinstance(one, SavedArray):
                    one.fault(np.zeros(1), dict.fromkeys(one.axes.replace("|", " ").split(), 1))


def test_negative_infinity_is_a_logarithm(tmp_path):
    fitted = MeanField().fit(SMALL)
    fitted.expected_log_confusion_[0, 0, 0] = -np.inf
    save(fitted, tmp_path / "model")


def test_a_prior_in_a_model_is_checked_as_well(tmp_path):
    assert_all_refused(BeliefPropagation(prior=np.full((3, 3), 2.0)).fit(SMALL), tmp_path)
