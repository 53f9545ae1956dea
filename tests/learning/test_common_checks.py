"""Every common check on every method that learns from features and a crowd."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import learning
from wisecrowd.core.registry import methods
from wisecrowd.learning.training.crowd_classifier import Training
from wisecrowd.testing.learners import LEARNER_CHECKS, OTHER_LEARNER_CHECKS, features_and_labels

WITHOUT_NETWORK = ("Auto", "Raykar", "CrowdKernel", "VoteRegression")
FEW = {"module": "linear", "epochs": 4, "batch_size": 16, "lr": 0.1}
# Options under which a method has another posterior than by default.
VARIANTS = {
    "BayesDGC": [{"estimate_class": False}, {"divide_by_mean": False}, {"selection": "crowd"}],
    "CrowdKernel": [
        {"robust": True},
        {"refine": "linear", "refine_options": {"epochs": 3, "lr": 0.1}},
    ],
    "DeepMF": [{"clip": 1.0}, {"prior": (2, 1)}],
    "DeepBP": [{"clip": 1.0}, {"selection": "crowd", "refit": False}],
    "InstanceConfusion": [{"warm_up": 2}, {"variant": "anchor", "warm_up": 2, "threshold": 0.4}],
    "MaxMIG": [{"learn_prior": True, "start": "dawid-skene"}],
}
CASES = [
    pytest.param(name, options, id=" ".join([name, *map(str, options)]))
    for name in [method.cls for method in methods("learning", type="labels")]
    for options in [{}, *VARIANTS.get(name, [])]
]


# Learners of numbers and of pairs, with options that change what is published.
OTHERS = {
    "RaykarRegression": [{}, {"l2": 3.0}],
    "CrowdLayerRegression": [
        {"epochs": 3, "kind": "S+B"}, {"epochs": 3, "module": "linear", "selection": "crowd"},
    ],
    "PreferenceNet": [
        {"epochs": 3}, {"epochs": 3, "loss": "robust", "flip_rate": 0.2, "module": "mlp"},
        {"epochs": 3, "selection": "crowd"},
    ],
    "RewardMixture": [{"n_groups": 2, "n_init": 2}, {"n_init": 1}],
}  # fmt: skip
OTHER_CASES = [
    pytest.param(name, options, id=" ".join([name, *map(str, options)]))
    for kind in ("ordered", "numbers", "pairs")
    for name in [method.cls for method in methods("learning", type=kind)]
    for options in OTHERS[name]
]


@pytest.mark.parametrize("check", OTHER_LEARNER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), OTHER_CASES)
def test_learner_of_another_kind(name, options, check):
    check(lambda: getattr(learning, name)(**options))


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_learner(name, options, check):
    few = {} if name in WITHOUT_NETWORK else FEW
    check(lambda: getattr(learning, name)(**{**few, **options}))


@pytest.mark.parametrize(
    ("name", "options"), [*CASES, pytest.param("DeepMF", {"clip": "auto"}, id="DeepMF auto")]
)
def test_the_fit_itself_writes_nothing_on_the_learner(name, options):
    method = getattr(learning, name)(**{**({} if name in WITHOUT_NETWORK else FEW), **options})
    X, labels = features_and_labels()
    before = dict(vars(method))
    method._fit(Training(X, labels, np.full(len(X), -1)))
    assert vars(method) == before


@pytest.mark.filterwarnings("ignore:.*have no labels")
@pytest.mark.parametrize("name", ["DeepMF", "DeepBP", "BayesDGC", "Raykar", "MaxMIG"])
def test_the_score_of_labels_has_the_prior_of_predictions(name):
    """A task without labels is forecast by the prior alone; the score starts from the same."""
    X, labels = features_and_labels()
    method = getattr(learning, name)(**({} if name == "Raykar" else {**FEW, "epochs": 40}))
    method.fit(X, labels)
    prior = method.predict_proba(X, labels.select_annotations(np.zeros(labels.n_annotations, bool)))
    rows = prior[labels.task] * method.confusion_[labels.worker, :, labels.label]
    assert method.score(X, labels) == pytest.approx(np.log(rows.sum(axis=1)).mean(), rel=1e-9)
