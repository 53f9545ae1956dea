from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from wisecrowd.inference.loop import LoopResult, Pace, best_of, iterate, squarem
from wisecrowd.inference.monitor import reporting


class Nothing(NamedTuple):
    value: float


class Shards:
    """One shard; counts the passes."""

    def __init__(self):
        self.passes = 0

    def map_reduce(self, model, step, states, params):
        self.passes += 1
        state, stats = getattr(model, step)(None, states[0], params)
        return [state], stats

    def collect(self, model, step, states, params, sink):
        self.passes += 1
        rows, stats = getattr(model, step)(None, states[0], params)
        sink(slice(0, 1), rows)
        return stats


class Contraction:
    """x moves a fraction of the way to its target; the objective is minus the squared distance."""

    def __init__(self, target=3.0, rate=0.1, jump=None):
        self.target, self.rate, self.jump = target, rate, jump

    def local_step(self, shard, state, params):
        return state + 1, Nothing(params)

    def last_step(self, shard, state, params):
        return f"at {params:g}", Nothing(params)

    def global_step(self, stats, params):
        assert stats.value == params
        return params + self.rate * (self.target - params)

    def objective(self, stats, params):
        return -((params - self.target) ** 2)

    def extrapolate(self, first, second, third):
        if self.jump is not None:
            return self.jump(third)
        moved = squarem(np.array([first]), np.array([second]), np.array([third]))
        return None if moved is None else float(moved[0])


def fit(model, x=0.0, **options):
    options = {"max_iter": 200, "tol": 0.0, **options}
    shards = Shards()
    return iterate(model, shards, x, [0], **options), shards


def test_history_belongs_to_the_parameters():
    result, engine = fit(Contraction(), max_iter=4)
    xs = [3 - 3 * 0.9**t for t in range(4)]
    np.testing.assert_allclose(result.history, [-((x - 3) ** 2) for x in xs])
    assert result.params == pytest.approx(xs[-1])
    assert result.stats.value == result.params  # statistics taken at the returned parameters
    assert result.objective == result.history[-1]
    assert (result.n_iter, engine.passes, result.converged) == (4, 4, False)
    assert result.states == [4]


def test_one_iteration_returns_the_start():
    result, _ = fit(Contraction(), max_iter=1)
    assert result.params == 0.0
    assert result.n_iter == 1
    assert not result.converged


def test_stops_when_the_relative_gain_is_small():
    model = Contraction(target=3.0)
    result, _ = fit(model, tol=1e-3)
    gains = np.abs(np.diff(result.history))
    assert result.converged
    needed = 1e-3 * np.minimum(1, 8 / np.arange(2, result.n_iter + 1)) ** 2
    assert gains[-1] <= needed[-1]
    assert (gains[:-1] > needed[:-1]).all()
    shifted = Contraction(target=3.0)
    shifted.objective = lambda stats, x: 1e6 - (x - 3) ** 2
    assert fit(shifted, tol=1e-3)[0].n_iter == 2  # relative to the objective's size


def test_tolerance_zero_runs_until_nothing_moves():
    result, _ = fit(Contraction(rate=1.0), tol=0.0)
    assert result.n_iter == 3  # start, target, target again
    assert result.converged


def test_given_states_are_used():
    result = iterate(Contraction(), Shards(), 0.0, [10], max_iter=2, tol=0.0)
    assert result.states == [12]


def test_acceleration_saves_iterations_and_never_falls():
    plain, _ = fit(Contraction(rate=0.02), tol=1e-10, max_iter=2000)
    quick, _ = fit(Contraction(rate=0.02), tol=1e-10, max_iter=2000, accelerate=True)
    assert (np.diff(quick.history) >= 0).all()
    assert quick.converged
    assert quick.n_iter < plain.n_iter / 5
    assert quick.params == pytest.approx(3, abs=1e-3)


@pytest.mark.parametrize("jump", [lambda x: x + 100, lambda x: float("nan")])
def test_a_rejected_extrapolation_counts_as_a_pass_and_changes_nothing(jump):
    guarded, engine = fit(Contraction(jump=jump), max_iter=12, accelerate=True)
    assert engine.passes == guarded.n_iter == len(guarded.history) == 12
    taken = np.append(True, np.diff(guarded.history) > 0)
    assert (~taken).sum() == 3  # passes 4, 7 and 10; pass 12 has no room for a trial
    plain, _ = fit(Contraction(), max_iter=9)
    np.testing.assert_allclose(np.array(guarded.history)[taken], plain.history)
    assert guarded.params == pytest.approx(plain.params)
    assert guarded.stats.value == guarded.params


def test_accepted_jump_is_kept():
    result, _ = fit(Contraction(jump=lambda x: 2.9), max_iter=5, accelerate=True)
    assert result.history[3] == pytest.approx(-(0.1**2))
    assert result.params == pytest.approx(2.91)
    assert (np.diff(result.history) > 0).all()


def test_the_last_permitted_pass_is_never_an_extrapolation():
    jump = pytest.fail  # is called with the third iterate
    result, _ = fit(Contraction(jump=jump), max_iter=4, accelerate=True)
    assert result.history == fit(Contraction(), max_iter=4)[0].history


def test_a_run_that_converges_quickly_is_not_extrapolated():
    model = Contraction(rate=0.9, jump=pytest.fail)
    quick, _ = fit(model, tol=1e-4, accelerate=True)
    plain, _ = fit(Contraction(rate=0.9), tol=1e-4)
    assert quick.history == plain.history
    assert quick.converged


def test_a_small_gain_next_to_an_extrapolation_does_not_end_the_run():
    # The first extrapolation lands where plain steps are tiny, far from the target.
    model = Contraction(rate=0.2)
    model.objective = lambda stats, x: -abs(3 - x)
    jumps = iter([2.99, 2.9999])
    model.jump = lambda x: next(jumps, x)
    result, _ = fit(model, tol=0.005, accelerate=True)
    gains = np.diff(result.history)
    assert gains[3] <= 0.005 < gains[2]  # a small gain after a large extrapolation: not yet
    assert result.n_iter > 5
    assert result.converged


def test_extrapolations_shrink_the_tolerance_as_the_passes_they_replace():
    pace, plain = Pace(1.0, 0), Pace(1.0, 0)
    for gain in (8.0, 4.0, 2.0):
        pace.note(gain, 1.0, False)
        plain.note(gain, 1.0, False)
    pace.note(20.0, 1.0, True)
    plain.note(1.5, 1.0, False)
    assert pace.passes == 4 + 2 * 10
    assert plain.passes == 4
    for one in (pace, plain):
        one.note(0.5, 1.0, False)
        one.note(0.5, 1.0, False)
    assert plain.converged
    assert not pace.converged  # 0.5 is more than (8 / 26)**2


def test_every_iteration_is_reported():
    seen = []
    with reporting(seen.append):
        result, _ = fit(Contraction(), max_iter=5)
    assert [p.iteration for p in seen] == [1, 2, 3, 4, 5]
    assert [p.objective for p in seen] == list(result.history)
    assert {p.max_iter for p in seen} == {5}


def test_best_of_takes_the_highest_and_the_first_in_a_draw():
    values = [1.0, 5.0, 5.0 * (1 + 1e-15), 2.0]  # rounding makes no winner
    runs = [
        LoopResult(number, None, [], (0.0, value), 2, True) for number, value in enumerate(values)
    ]
    assert best_of(lambda number: runs[number], 4).params == 1
    impossible = LoopResult(9, None, [], (0.0, -np.inf), 2, True)
    assert best_of(lambda number: runs[0] if number else impossible, 2).params == 0
    assert best_of(lambda number: runs[number], 1).params == 0


def test_squarem_solves_a_linear_fixed_point_in_one_step():
    target = np.array([1.0, -2.0])
    x0 = np.zeros(2)
    x1 = x0 + 0.1 * (target - x0)
    x2 = x1 + 0.1 * (target - x1)
    np.testing.assert_allclose(squarem(x0, x1, x2), target)


def test_squarem_refuses_steps_that_go_nowhere():
    still = np.ones(3)
    assert squarem(still, still, still) is None
    assert squarem(np.zeros(1), np.ones(1), np.full(1, 2.0)) is None  # a straight line: no end
    assert squarem(np.zeros(1), np.ones(1), np.zeros(1)) is None  # turning back


def test_a_slow_iteration_must_gain_less_to_stop():
    slow, quick = Contraction(rate=0.02), Contraction(rate=0.9)
    tol = 1e-3
    done, _ = fit(slow, max_iter=1000, tol=tol)
    gains = np.diff(done.history)
    stopped = int(np.argmax(gains <= tol)) + 2  # where the tolerance alone would have stopped
    assert done.converged
    assert done.n_iter > stopped
    assert gains[-1] <= tol * (8 / done.n_iter) ** 2 < gains[-2]
    at_once, _ = fit(quick, tol=tol)
    gains = np.diff(at_once.history)
    assert at_once.n_iter == int(np.argmax(gains <= tol)) + 2 <= 8


def test_a_run_that_was_cut_off_goes_on_as_if_it_had_not_been():
    whole, _ = fit(Contraction(), tol=1e-9)
    short, _ = fit(Contraction(), tol=1e-9, max_iter=7)
    rest, engine = fit(Contraction(), tol=1e-9, after=short)
    assert not short.converged
    assert rest.history == whole.history
    assert (rest.params, rest.n_iter, rest.converged) == (whole.params, whole.n_iter, True)
    assert engine.passes == whole.n_iter - 7


def test_the_last_permitted_pass_answers():
    rows = []
    options = {"sink": lambda tasks, part: rows.append(part), "max_iter": 3}
    result, shards = fit(Contraction(), **options)
    assert result.answered
    assert rows == [f"at {result.params:g}"]
    assert shards.passes == 3
    early, _ = fit(Contraction(rate=1.0), **{**options, "max_iter": 9})
    assert early.converged
    assert not early.answered
    assert len(rows) == 1


def test_the_pass_that_is_expected_to_be_the_last_answers():
    rows = []
    options = {"sink": lambda tasks, part: rows.append(part), "tol": 1e-6, "max_iter": 99}
    result, shards = fit(Contraction(rate=0.9), **options)
    assert result.converged
    assert result.answered
    assert rows == [f"at {result.params:g}"]
    assert shards.passes == result.n_iter < 99


def test_a_run_that_goes_on_after_the_expected_end_has_not_answered():
    rows, values = [], iter([0.0, 8.0, 9.0, 20.0, 20.0])
    model = Contraction()
    model.objective = lambda stats, x: next(values)
    result, _ = fit(model, tol=0.02, sink=lambda tasks, part: rows.append(part))
    assert (result.n_iter, result.converged, result.answered) == (5, True, False)
    assert len(rows) == 1  # of pass 4, which was expected to gain 1/8


def test_a_rejected_extrapolation_leaves_no_answer():
    rows = []
    options = {"sink": lambda tasks, part: rows.append(part), "accelerate": True, "tol": 1e-3}
    result, _ = fit(Contraction(jump=lambda x: x + 100), **options)
    assert result.converged
    assert not result.answered or rows[-1] == f"at {result.params:g}"
    assert result.stats.value == result.params
