"""Models whose arrays and scalars were changed by somebody who also mended the digests."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from tests.support.damaged_files import seal
from tests.support.forged_models import accepted_forgeries, check_forged_models

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
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.core.saved_attributes import SavedArray
from wisecrowd.kinds.classes.families import posteriors
from wisecrowd.learning import (
    BayesDGC,
    CrowdLayer,
    CrowdLayerRegression,
    MaxMIG,
    PreferenceNet,
    RaykarRegression,
    RewardMixture,
    TwoStage,
)
from wisecrowd.storage import saved_methods
from wisecrowd.storage.saved_methods import load, save
from wisecrowd.testing.crowds import simulated
from wisecrowd.testing.foundation import maker
from wisecrowd.testing.learners import learner_data

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


OTHER_LEARNERS = [
    RaykarRegression(max_iter=3),
    CrowdLayerRegression(epochs=1, kind="S+B"),
    PreferenceNet(epochs=1),
    PreferenceNet(epochs=1, loss="plain"),
    RewardMixture(n_groups=2, n_init=1),
]


def test_learners_of_all_other_kinds_are_forged():
    named = {type(learner).__name__ for learner in OTHER_LEARNERS}
    assert named == {
        get_method(name, "learning").__name__
        for kind in ("ordered", "numbers", "pairs")
        for name in method_names("learning", kind)
    }


@pytest.mark.filterwarnings("ignore:.*have no (labels|votes)")
@pytest.mark.parametrize("learner", OTHER_LEARNERS, ids=repr)
def test_forged_learners_of_other_kinds_are_refused(learner, tmp_path):
    data = learner_data(lambda: learner)
    assert_all_refused(learner.fit(*data), tmp_path)


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


def test_forged_sparse_posteriors_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(posteriors, "DENSE_LIMIT", 0)
    for number, method in enumerate((MajorityVote(), OneCoin())):
        fitted = method.fit(SMALL)
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


def test_few_axes_are_of_any_length():
    """Forgeries follow the declarations, so that one that allows too much is seen only here."""
    loose = {
        name
        for kind in ("aggregation", "learning")
        for method in method_names(kind)
        for name, one in get_method(method, kind)()._saved_attributes().items()
        if isinstance(one, SavedArray) and "*" in one.axes
    }
    assert loose == {"elbo_", "outlier_score_", "aggregated_"}  # no prediction uses them


def test_negative_infinity_is_a_logarithm(tmp_path):
    fitted = MeanField().fit(SMALL)
    fitted.expected_log_confusion_[0, 0, 0] = -np.inf
    save(fitted, tmp_path / "model")


def test_a_prior_in_a_model_is_checked_as_well(tmp_path):
    assert_all_refused(BeliefPropagation(prior=np.full((3, 3), 2.0)).fit(SMALL), tmp_path)


def forged_network(folder, change):
    """Change the weights of a saved network and mend the digests."""
    from safetensors.torch import load_file
    from safetensors.torch import save as to_bytes

    weights = load_file(folder / "network.safetensors")
    (folder / "network.safetensors").write_bytes(to_bytes(change(weights)))
    seal(folder)


def with_value(value):
    def change(weights):
        weights["1.weight"][0, 0] = value
        return weights

    return change


def cut(weights):
    return {**weights, "1.weight": weights["1.weight"][:, 1:].contiguous()}


def without_one(weights):
    del weights["1.weight"]
    return weights


@pytest.mark.parametrize("change", [with_value(np.nan), with_value(np.inf), cut, without_one])
def test_forged_networks_are_refused(change, tmp_path):
    CrowdLayer(epochs=1, module="linear").fit(X, SMALL).save(tmp_path / "model")
    forged_network(tmp_path / "model", change)
    with pytest.raises(DataError, match=r"^Cannot load the method at .*network\.safetensors"):
        load(tmp_path / "model")


def edited(folder, change):
    """Change the index of a saved model and mend the digests."""
    index = json.loads((folder / "model.json").read_text())
    change(index)
    (folder / "model.json").write_text(json.dumps(index))
    seal(folder)


def test_a_model_without_its_network_is_refused(tmp_path):
    CrowdLayer(epochs=1, module="linear").fit(X, SMALL).save(tmp_path / "model")
    edited(tmp_path / "model", lambda index: index["sha256"].pop("network.safetensors"))
    with pytest.raises(DataError, match=r"network\.safetensors is missing"):
        load(tmp_path / "model")


@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_a_network_larger_than_its_file_is_refused_before_it_is_made(module, tmp_path):
    CrowdLayer(epochs=1, module=module).fit(X, SMALL).save(tmp_path / "model")

    def enlarge(index):  # 40 terabytes of weights
        index["state"]["input_shape_"]["items"] = [10**13]

    edited(tmp_path / "model", enlarge)
    with pytest.raises(DataError, match="does not fit the network"):
        load(tmp_path / "model")


def test_the_check_notices_a_loader_that_checks_nothing(monkeypatch):
    check_forged_models(maker(MajorityVote))
    monkeypatch.setattr(saved_methods, "require_sound", lambda method: None)
    with pytest.raises(AssertionError, match=r"probas_ shortened along axis 0 \(it loads\)"):
        check_forged_models(maker(MajorityVote))
