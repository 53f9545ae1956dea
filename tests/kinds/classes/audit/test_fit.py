"""What a fit warns of is found by an audit as well."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MeanField, OneCoin
from wisecrowd.audit import audit_crowd, check_fit, find_temperature
from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.core.part import NotApplicable
from wisecrowd.core.result import Fit
from wisecrowd.kinds.classes.audit.fit import Temperature, best_temperature
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import naive_bayes
from wisecrowd.metrics import log_loss

OPPOSED = 13 * simulate.OneCoinWorkers(8, 2) + 7 * simulate.Adversaries(0.2)


def test_findings_say_what_the_warning_says():
    labels = simulate.crowd(500, OPPOSED).labels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit = audit_crowd(labels, parts=["fit"])
    (finding,) = audit.findings
    assert (finding.id, finding.severity) == ("adversarial-majority", "high")
    assert set(finding.affected) == set(range(13, 20))
    with pytest.warns(WisecrowdWarning) as told:
        DawidSkene().fit(labels)
    assert [str(w.message) for w in told] == [f"{finding.explanation} {finding.remedy}"]


def test_a_fit_that_was_cut_off():
    labels = simulate.crowd(300, 20 * simulate.OneCoinWorkers()).labels
    short = DawidSkene(max_iter=2).fit(labels)
    assert [found.id for found in check_fit(labels, fit=short).findings()] == ["not-converged"]
    assert check_fit(labels).to_dict() == {"method": "Auto", "cautions": []}


WORKERS = np.array([[[0.8, 0.2], [0.3, 0.7]]] * 6 + [[[0.6, 0.4], [0.4, 0.6]]] * 4)
PRIOR = np.array([0.6, 0.4])


class Exaggerating(Aggregator):
    """The exact posterior of known workers, to a power: over-confident by as much."""

    promises = Tags(confusion=True)

    def __init__(self, *, power=1.0):
        self.power = power

    def _fit(self, problem):
        exact = naive_bayes(problem, WORKERS, PRIOR) ** self.power
        nothing = np.zeros(problem.data.n_workers)
        probas = exact / exact.sum(axis=1, keepdims=True)
        return Fit(probas, nothing, nothing, class_prior=PRIOR, confusion=WORKERS)


@pytest.fixture(scope="module")
def made():
    workers = simulate.FixedConfusion(WORKERS)
    return simulate.crowd(3000, workers, simulate.PerTask(4), n_workers=10, class_prior=PRIOR)


@pytest.mark.parametrize("power", [1.0, 1.5, 3.0])
def test_a_known_exaggeration_is_recovered(made, power):
    model = Exaggerating(power=power).fit(made.labels)
    found = find_temperature(made.labels, fit=model)
    assert found.temperature == pytest.approx(power, rel=0.12)
    exact = Exaggerating().fit(made.labels).probas_
    np.testing.assert_allclose(found.apply(model.probas_), exact, atol=0.03)
    assert bool(found.findings()) == (power > 1.25)


def test_modesty_is_left_as_it_is(made):
    model = Exaggerating(power=0.5).fit(made.labels)
    found = find_temperature(made.labels, fit=model)
    assert found.temperature == 1.0
    np.testing.assert_allclose(found.apply(model.probas_), model.probas_, atol=1e-12)


@pytest.mark.parametrize("method", [MeanField, OneCoin])
def test_sparse_crowds_are_corrected_towards_the_truth(method):
    crowd = simulate.crowd(1000, 500 * simulate.OneCoinWorkers(6, 2), random_state=1)
    model = method().fit(crowd.labels)
    corrected = find_temperature(crowd.labels, fit=model).apply(model.probas_)
    classes = np.arange(2)
    before, after = (
        log_loss(crowd.truth_codes, p, classes=classes) for p in (model.probas_, corrected)
    )
    assert after < 0.95 * before
    np.testing.assert_array_equal(corrected.argmax(axis=1), model.probas_.argmax(axis=1))


def test_certainty_stays_certain():
    sure = np.array([[1.0, 0.0], [0.9, 0.1]])
    assert Temperature(2.0, 0.0, 0.0, "x").apply(sure)[0].tolist() == [1.0, 0.0]
    assert Temperature(2.0, 0.0, 0.0, "x").apply(sure)[1, 0] == pytest.approx(0.75)


def test_the_best_temperature_has_the_least_log_loss():
    rng = np.random.default_rng(0)
    logs, truth = np.log(rng.dirichlet([0.3, 0.3], 400)), rng.integers(0, 2, 400)
    best = best_temperature(logs, truth)

    def loss(temperature):
        scores = logs / temperature
        scores = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return -scores[np.arange(400), truth].mean()

    grid = np.exp(np.linspace(0, np.log(20), 400))
    assert loss(best) <= min(map(loss, grid)) + 1e-6


def test_one_class_has_no_temperature():
    with pytest.raises(NotApplicable):
        find_temperature(CrowdLabels.from_matrix([[0, 0], [0, 0]]))


def test_the_former_name_of_the_number_of_simulations():
    made = simulate.crowd(60, 6 * simulate.OneCoinWorkers(6, 2), random_state=0)
    new, former = (
        find_temperature(made.labels, **{name: 3}) for name in ("n_simulations", "n_imagined")
    )
    assert (new.temperature, new.log_loss) == (former.temperature, former.log_loss)
    assert find_temperature(made.labels, n_simulations=1).log_loss != new.log_loss
    with pytest.raises(ParameterError, match="n_simulations"):
        find_temperature(made.labels, n_imagined=0)
