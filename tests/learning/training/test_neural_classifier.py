from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.inference.monitor import reporting
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CCEM, AggNet, SoftBootstrap, TwoStage
from wisecrowd.learning.ccem import CoupledModel
from wisecrowd.learning.training import network_training
from wisecrowd.learning.training.crowd_data import CrowdData, Features, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.label_model import fit_confusion
from wisecrowd.learning.training.network_training import ENOUGH_LABELS, held_out
from wisecrowd.learning.training.neural_classifier import crowd_score, gold_score
from wisecrowd.nn.heads import SoftmaxConfusion

SMALL = {"module": "linear", "epochs": 4, "lr": 0.1}
METHODS = [CCEM, AggNet, TwoStage]


def crowd(n=60, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    X = 2 * np.eye(n_classes)[truth] + 0.5 * rng.normal(size=(n, n_classes))
    votes = np.where(
        rng.random((n, 3)) < 0.75, truth[:, None], rng.integers(n_classes, size=(n, 3))
    )
    return X, votes, truth


def weights(model):
    return torch.cat([p.detach().flatten() for p in model._network.parameters()])


# ------------------------------------------------------------------------------------ determinism


def test_a_seed_gives_the_same_bits_and_another_seed_others():
    X, votes, _ = crowd()
    one, two = (CCEM(epochs=3).fit(X, votes) for _ in range(2))
    other = CCEM(epochs=3, random_state=1).fit(X, votes)
    assert torch.equal(weights(one), weights(two))
    np.testing.assert_array_equal(one.probas_, two.probas_)
    assert not torch.equal(weights(one), weights(other))


def test_global_random_states_are_left_alone():
    X, votes, _ = crowd()
    misfit = nn.Linear(9, 9)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    CCEM(epochs=2, selection="crowd", balance="sampling").fit(X, votes)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ParameterError):
        CCEM(module=misfit).fit(X, votes)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_users_module_is_copied_with_its_weights_and_kept_as_it_was():
    X, votes, _ = crowd()
    module = nn.Sequential(nn.Linear(3, 3))
    before = module[0].weight.detach().clone()
    model = CCEM(module=module, epochs=1, lr=1e-9, crowd_lr=1e-9, weight_decay=0.0).fit(X, votes)
    assert torch.equal(module[0].weight, before)
    assert torch.allclose(model._network[0].weight, before, atol=1e-6)
    assert model._network is not module


# -------------------------------------------------------------------------------- weights, balance


@pytest.mark.parametrize("kind", METHODS)
def test_an_integer_weight_is_a_repetition_in_the_loss(kind):
    X, votes, _ = crowd()
    task, worker = np.repeat(np.arange(60), 3), np.tile(np.arange(3), 60)
    weight = 1 + (np.arange(180) % 2)
    weighted = CrowdLabels.from_arrays(task, worker, votes.ravel(), weight=weight)
    repeated = CrowdLabels.from_arrays(
        *(np.repeat(a, weight) for a in (task, worker, votes.ravel())), duplicates="keep"
    )
    ones = CrowdLabels.from_arrays(task, worker, votes.ravel(), weight=np.ones(180))
    fits = [kind(**SMALL).fit(X, y) for y in (weighted, repeated, ones, votes)]
    torch.testing.assert_close(weights(fits[0]), weights(fits[1]), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(weights(fits[2]), weights(fits[3]), atol=1e-6, rtol=1e-5)
    assert (weights(fits[0]) - weights(fits[3])).abs().max() > 1e-4


def rare(n=300, seed=0):
    """One worker; a tenth of the tasks has the second class, and the features overlap."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.1).astype(int)
    return np.eye(2)[truth] + 0.7 * rng.normal(size=(n, 2)), truth


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("balance", ["weights", "sampling"])
def test_balancing_finds_more_of_a_rare_class(kind, balance):
    X, truth = rare()
    settings = {"module": "linear", "epochs": 25, "lr": 0.05}
    plain = kind(**settings).fit(X, truth)
    balanced = kind(**settings, balance=balance).fit(X, truth)
    found = [(model.predict(X)[truth == 1] == 1).mean() for model in (plain, balanced)]
    assert found[1] > found[0] + 0.2


def test_balancing_by_weights_is_the_weighted_cross_entropy():
    X, truth = rare()
    layer = nn.Linear(2, 2)
    step = {
        "module": layer, "epochs": 1, "batch_size": 1000, "optimizer": "sgd", "lr": 0.1,
        "weight_decay": 0.0,
    }  # fmt: skip
    model = TwoStage(**step, balance="weights").fit(X, truth)
    totals = np.bincount(truth)
    class_weight = torch.tensor(totals.sum() / (2 * totals), dtype=torch.float32)
    logits = layer(torch.tensor(X, dtype=torch.float32))
    loss = nn.functional.cross_entropy(logits, torch.from_numpy(truth), weight=class_weight)
    torch.autograd.backward(loss)
    expected = layer.weight - 0.1 * layer.weight.grad
    torch.testing.assert_close(model._network.weight, expected, atol=1e-6, rtol=1e-5)


# -------------------------------------------------------------------------------------------- gold


def test_gold_teaches_the_classifier_also_where_there_are_no_labels():
    X, votes, truth = crowd(90)
    wrong = (votes + 1) % 3  # a crowd that is wrong most of the time
    labels = CrowdLabels.from_matrix(wrong[:60])
    gold = {i: int(truth[i]) for i in range(60, 90)}
    settings = {"module": "linear", "epochs": 30, "lr": 0.05}
    with pytest.warns(WisecrowdWarning, match="30 of 90 rows of X have no labels"):
        taught = SoftBootstrap(**settings).fit(X, labels, gold=gold)
    with pytest.warns(WisecrowdWarning):
        untaught = SoftBootstrap(**settings).fit(X, labels)
    assert taught.predict_proba(X)[np.arange(90), truth].mean() > (
        untaught.predict_proba(X)[np.arange(90), truth].mean() + 0.05
    )
    np.testing.assert_array_equal(taught.labels_[60:], truth[60:])


def test_rows_that_nothing_is_known_of_do_not_change_the_network():
    X, votes, _ = crowd()
    more = np.vstack([X, 100 + X[:5]])
    settings = {"module": nn.Linear(3, 3), "epochs": 3}  # without standardisation
    with pytest.warns(WisecrowdWarning, match="5 of 65"):
        extended = CCEM(**settings).fit(more, CrowdLabels.from_matrix(votes))
    assert torch.equal(weights(extended), weights(CCEM(**settings).fit(X, votes)))


# --------------------------------------------------------------------------------------- selection


def test_held_out_labels_are_hidden_until_the_refit():
    X, votes, _ = crowd()
    seen = []

    class Watched(CCEM):
        def _build(self, network, data):
            seen.append(data.labels.labels_per_task > 0)
            return super()._build(network, data)

    model = Watched(**SMALL, selection="crowd", valid_fraction=0.25).fit(X, votes)
    assert [int(part.sum()) for part in seen] == [45, 60]
    assert model.selection_ == "crowd"
    assert all("score" in record for record in model.history_)
    scores = [record["score"] for record in model.history_]
    assert model.best_epoch_ == 1 + int(np.argmax(scores))
    assert model.n_iter_ == model.best_epoch_


def test_without_refit_the_chosen_epoch_itself_is_kept():
    X, votes, _ = crowd()
    settings = {**SMALL, "selection": "crowd"}
    kept = CCEM(**settings, refit=False).fit(X, votes)
    refitted = CCEM(**settings).fit(X, votes)
    assert kept.best_epoch_ == refitted.best_epoch_
    assert kept.n_iter_ == 4
    assert not torch.equal(weights(kept), weights(refitted))


def test_held_out_labels_choose_the_epoch_where_there_are_enough():
    X, votes, truth = crowd()
    enough = ENOUGH_LABELS / votes.size  # share that holds out just as many
    model = CCEM(**SMALL, valid_fraction=enough).fit(X, votes)
    assert model.selection_ == "crowd"
    too_few = CCEM(**SMALL, valid_fraction=0.99 * enough).fit(X, votes)
    assert too_few.selection_ == "last"
    assert "calibration_" not in vars(too_few)
    known = CCEM(**SMALL, valid_fraction=enough).fit(X, votes, valid=(X, truth))
    assert known.selection_ == "gold"
    last = CCEM(**SMALL, valid_fraction=enough, selection="last").fit(X, votes)
    assert last.selection_ == "last"


@pytest.mark.parametrize(("patience", "stops"), [("auto", 12), (3, 4), (None, 14)])
def test_training_stops_when_held_out_labels_become_less_likely(patience, stops, monkeypatch):
    X, votes, _ = crowd()
    monkeypatch.setattr(CCEM, "_score", lambda *_: 0.0)
    monkeypatch.setattr(network_training, "PATIENCE", (2, 11 * 54))  # 54 tasks are not held out
    model = CCEM(**{**SMALL, "epochs": 14}, selection="crowd", patience=patience).fit(X, votes)
    assert len(model.history_) == stops
    assert model.best_epoch_ == 1
    assert model.converged_
    gold = CCEM(**{**SMALL, "epochs": 14}).fit(X, votes, valid=(X, np.zeros(60, int)))
    assert len(gold.history_) == 14


def test_a_validation_set_chooses_the_epoch():
    X, votes, truth = crowd()
    model = CCEM(**{**SMALL, "epochs": 8}, calibrate=False).fit(X, votes, valid=(X, truth))
    assert model.selection_ == "gold"
    scores = [record["score"] for record in model.history_]
    assert model.best_epoch_ == 1 + int(np.argmax(scores))
    log_f = np.log(model.predict_proba(X)[np.arange(60), truth]).mean()
    assert log_f == pytest.approx(max(scores), rel=1e-5)
    with pytest.raises(ParameterError, match="selection is 'gold'"):
        CCEM(selection="gold").fit(X, votes)
    with pytest.raises(DataError, match=r"validation set has features of shape \(2,\)"):
        CCEM(**SMALL).fit(X, votes, valid=(X[:, :2], truth))


def test_patience_ends_training_early():
    X, votes, truth = crowd()
    flipped = (truth + 1) % 3  # every epoch is worse than the one before
    model = CCEM(module="linear", epochs=30, lr=0.1, patience=2).fit(X, votes, valid=(X, flipped))
    assert model.n_iter_ == model.best_epoch_ + 2 < 30
    assert model.converged_
    assert model.warnings_ == ()


def test_a_grid_search_over_a_network():
    X, votes, _ = crowd()
    labels = CrowdLabels.from_matrix(votes)
    search = GridSearchCV(CCEM(**SMALL), {"lr": [1e-9, 0.1]}, cv=3).fit(X, labels)
    assert search.best_params_ == {"lr": 0.1}
    assert search.best_estimator_.score(X, labels) == search.score(X, labels)


# ------------------------------------------------------------------------ interruption, divergence


def interrupting(at):
    count = []

    def listen(progress):
        count.append(progress)
        if len(count) == at:
            raise KeyboardInterrupt

    return listen


def test_ctrl_c_keeps_the_best_model_so_far():
    X, votes, _ = crowd()
    with reporting(interrupting(3)), pytest.warns(WisecrowdWarning, match="after epoch 3"):
        stopped = CCEM(**{**SMALL, "epochs": 50}).fit(X, votes)
    assert not stopped.converged_
    assert torch.equal(weights(stopped), weights(CCEM(**{**SMALL, "epochs": 3}).fit(X, votes)))


def test_ctrl_c_while_refitting_keeps_what_was_chosen():
    X, votes, _ = crowd()
    settings = {**SMALL, "selection": "crowd"}
    chosen = CCEM(**settings, refit=False).fit(X, votes)
    assert chosen.best_epoch_ > 1
    with reporting(interrupting(4 + 1)), pytest.warns(WisecrowdWarning, match="interrupted"):
        stopped = CCEM(**settings).fit(X, votes)
    assert torch.equal(weights(stopped), weights(chosen))


@pytest.mark.parametrize("kind", METHODS)
def test_a_rate_of_a_million_stops_with_advice_and_a_usable_model(kind):
    X, votes, _ = crowd()
    with pytest.warns(WisecrowdWarning, match=r"diverged in epoch 1: .* lower lr or crowd_lr"):
        model = kind(module="linear", epochs=5, lr=1e6).fit(X, votes)
    assert not model.converged_
    assert model.n_iter_ == 0
    assert np.isfinite(model.predict_proba(X)).all()
    assert weights(model).abs().max() < 10


# ------------------------------------------------------------------------------ features of a kind


class Lazy(Dataset):
    """Items made when asked for, in both forms that data sets have."""

    def __init__(self, X, *, pairs):
        self.X, self.pairs = X, pairs

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        return (self.X[row], "whatever") if self.pairs else self.X[row]


@pytest.mark.parametrize("pairs", [True, False])
def test_a_dataset_is_as_good_as_an_array(pairs):
    X, votes, _ = crowd()
    array = CCEM(epochs=2).fit(X, votes)
    lazy = CCEM(epochs=2).fit(Lazy(X, pairs=pairs), votes)
    assert torch.equal(weights(lazy), weights(array))
    np.testing.assert_allclose(lazy.predict_proba(Lazy(X, pairs=pairs)), array.predict_proba(X))
    np.testing.assert_allclose(lazy.predict_proba(X), array.predict_proba(X))
    tensors = TensorDataset(torch.tensor(X, dtype=torch.float32))
    assert torch.equal(weights(CCEM(epochs=2).fit(tensors, votes)), weights(array))
    assert not hasattr(lazy, "n_features_in_")


def test_a_bad_item_of_a_dataset_is_named():
    X, votes, _ = crowd()
    X[17, 2] = np.nan
    with pytest.raises(DataError, match="NaN or infinity in item 17"):
        CCEM(epochs=1).fit(Lazy(X, pairs=False), votes)


@pytest.mark.parametrize("module", ["pooled-cnn", "deep-cnn"])
def test_images(module):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=40)
    images = 0.1 * rng.normal(size=(40, 1, 12, 12))
    images[truth == 1, :, :6] += 1.0  # the upper half is bright
    votes = np.repeat(truth[:, None], 2, axis=1)
    model = CCEM(module=module, epochs=8, batch_size=20, lr=5e-3).fit(images, votes)
    assert model.score(images, truth) > 0.9
    assert model.predict_proba(images).shape == (40, 2)
    with pytest.raises(DataError, match=r"shape \(1, 14, 12\) per task, .* \(1, 12, 12\)"):
        model.predict(np.zeros((2, 1, 14, 12)))
    with pytest.raises(DataError, match="A CNN needs images"):
        CCEM(module=module).fit(images.reshape(40, -1), votes)


def test_images_are_flattened_for_a_plain_network():
    X, votes, _ = crowd()
    images = X.reshape(60, 1, 3, 1)
    flat = CCEM(epochs=2).fit(X, votes)
    assert torch.equal(weights(CCEM(epochs=2).fit(images, votes)), weights(flat))


def test_a_value_that_single_precision_cannot_hold_is_named():
    X, votes, _ = crowd()
    X[5, 1] = 1e300
    with pytest.raises(DataError, match=r"row 5, column 1 .*, which is too large"):
        CCEM(epochs=1).fit(X, votes)


# -------------------------------------------------------------------------------- bad parameters


def test_modules_that_do_not_fit_are_said():
    X, votes, _ = crowd()
    with pytest.raises(ParameterError, match=r"cannot take features of shape \(3,\)"):
        CCEM(module=nn.Linear(7, 3)).fit(X, votes)
    with pytest.raises(
        ParameterError, match=r"has shape \(2, 5\); .* one logit per class, \(2, 3\)"
    ):
        CCEM(module=nn.Linear(3, 5)).fit(X, votes)
    with pytest.raises(ParameterError, match=r"module is 'mpl'.*'mlp'"):
        CCEM(module="mpl").fit(X, votes)
    made = CCEM(module=lambda shape, n: nn.Linear(shape[0], n), epochs=1).fit(X, votes)
    assert made.predict(X).shape == (60,)


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 0}, {"batch_size": 0}, {"lr": 0.0}, {"crowd_lr": -1}, {"weight_decay": -1},
        {"optimizer": "lbfgs"}, {"schedule": "linear"}, {"selection": "best"},
        {"balance": "yes"}, {"valid_fraction": 0.95}, {"refit": 1}, {"clip_gradient": 0.0},
        {"patience": 0}, {"patience": "soon"}, {"calibrate": "yes"}, {"device": "abacus"},
        {"random_state": -1},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(settings):
    X, votes, _ = crowd()
    with pytest.raises(ParameterError, match=next(iter(settings))):
        CCEM(**settings).fit(X, votes)


@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_every_optimizer_and_schedule_learns(optimizer, schedule):
    X, votes, truth = crowd()
    model = CCEM(
        module="linear", epochs=15, lr=0.1, optimizer=optimizer, schedule=schedule,
        clip_gradient=1.0,
    )  # fmt: skip
    assert model.fit(X, votes).score(X, truth) > 0.9
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]


# ------------------------------------------------------------------------------- size of batches


@pytest.mark.parametrize(("n", "size", "rate"), [(59, 16, 0.1), (60, 64, 0.2)])
def test_automatic_batches_grow_with_the_data_and_stay_in_a_refit(n, size, rate, monkeypatch):
    from wisecrowd.learning.training import network_training

    seen = []

    def spy(model, data, rows, options, **others):
        seen.append((options.batch_size, options.lr, options.crowd_lr))
        return train(model, data, rows, options, **others)

    train = network_training.train
    monkeypatch.setattr(network_training, "train", spy)
    for name, value in {"MANY_ROWS": 60, "SMALL_BATCH": 16, "LARGE_BATCH": 64}.items():
        monkeypatch.setattr(network_training, name, value)
    X, votes, _ = crowd(n)
    CCEM(**{**SMALL, "epochs": 1}, crowd_lr=0.1, selection="crowd").fit(X, votes)
    assert seen == [(size, rate, rate)] * 2  # the first run holds tasks out
    CCEM(**{**SMALL, "epochs": 1}, batch_size=5, selection="last").fit(X, votes)
    assert seen[2][:2] == (5, 0.1)


def problem(n=30, weight=None, label_weight=None):
    rng = np.random.default_rng(0)
    X, votes = rng.normal(size=(n, 2)), rng.integers(2, size=(n, 3))
    labels = CrowdLabels.from_arrays(
        np.repeat(np.arange(n), 3), np.tile(np.arange(3), n), votes.ravel(),
        weight=None if weight is None else rng.integers(1, 4, size=3 * n),
    )  # fmt: skip
    data = CrowdData(X, labels, np.full(n, -1), label_weight=label_weight)
    torch.manual_seed(0)
    return nn.Linear(2, 2), data, votes


def test_rows_are_split_at_random_and_in_order():
    torch.manual_seed(0)
    rows = torch.arange(100) * 2
    train, valid = held_out(rows, 0.2)
    assert len(valid) == 20
    assert sorted([*train.tolist(), *valid.tolist()]) == rows.tolist()
    assert train.tolist() == sorted(train.tolist())
    assert valid.tolist() == sorted(valid.tolist())
    assert valid.tolist() != rows[:20].tolist()
    train, valid = held_out(torch.arange(2), 0.9)
    assert (len(train), len(valid)) == (1, 1)  # something is left to learn from


@pytest.mark.parametrize("weight", [None, "random"])
def test_the_crowd_scores_by_the_likelihood_of_held_out_labels(weight):
    network, data, votes = problem(weight=weight)
    model = CoupledModel(network, SoftmaxConfusion(3, 2, strength=1.0))
    train, valid = torch.arange(20), torch.arange(20, 30)
    f = torch.softmax(network(data.features[torch.arange(30)]), 1).detach().numpy()
    theta = model.confusion().detach().numpy()
    weights = np.ones(90) if weight is None else data.labels.weight
    total = mass = 0.0
    for i in range(20, 30):
        for j in range(3):
            w = weights[3 * i + j]
            total += w * np.log(f[i] @ theta[j, :, votes[i, j]])
            mass += w
    assert crowd_score(model, data, train, valid) == pytest.approx(total / mass, rel=1e-5)


def test_balancing_does_not_change_what_is_likely():
    network, data, _ = problem()
    _, balanced, _ = problem(label_weight=np.array([5.0, 0.2]))
    model = CoupledModel(network, SoftmaxConfusion(3, 2, strength=1.0))
    rows = torch.arange(20), torch.arange(20, 30)
    assert crowd_score(model, data, *rows) == pytest.approx(crowd_score(model, balanced, *rows))
    bare = CrowdModel(network)
    assert crowd_score(bare, data, *rows) == pytest.approx(crowd_score(bare, balanced, *rows))


def test_without_confusion_matrices_they_are_fitted_to_the_labels_that_are_not_held_out():
    network, data, votes = problem()
    train, valid = torch.arange(20), torch.arange(20, 30)
    f = np.exp(log_probas_of(network, data.features))
    theta = fit_confusion(f[:20], CrowdLabels.from_matrix(votes[:20]))
    expected = np.mean(
        [np.log(f[i] @ theta[j, :, votes[i, j]]) for i in range(20, 30) for j in range(3)]
    )
    assert crowd_score(CrowdModel(network), data, train, valid) == pytest.approx(expected)


def test_scoring_turns_dropout_off():
    network, data, _ = problem()
    model = CoupledModel(nn.Sequential(network, nn.Dropout(0.5)), SoftmaxConfusion(3, 2))
    rows = torch.arange(20), torch.arange(20, 30)
    model.train()
    assert len({crowd_score(model, data, *rows) for _ in range(3)}) == 1


def test_gold_scores_by_the_log_probability_of_the_known_classes():
    network, _, _ = problem()
    X, codes = np.eye(2), np.array([1, 0])
    f = torch.softmax(network(torch.eye(2)), 1).detach().numpy()
    expected = np.log(f[[0, 1], codes]).mean()
    assert gold_score(CrowdModel(network), Features(X), codes, "cpu") == pytest.approx(expected)
