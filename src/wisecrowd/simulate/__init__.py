"""Simulated crowds: workers with known errors, and assignments of tasks to workers.

>>> from wisecrowd import simulate
>>> workers = 30 * simulate.OneCoinWorkers(4, 2) + 5 * simulate.Spammers()
>>> simulate.crowd(1000, workers, simulate.PerTask(5), class_prior=[0.7, 0.3])
SimulatedCrowd(CrowdLabels(1000 tasks, 35 workers, 2 classes, 5000 annotations))

Three parts combine freely: worker populations (their errors), assignment graphs (the tasks of each
worker) and difficulties (how hard each task is).
"""

from wisecrowd.simulate.box_workers import SimulatedBoxes, boxes
from wisecrowd.simulate.copiers import Colluders, Copiers, DependentGroup
from wisecrowd.simulate.difficulty import BetaDifficulty, Difficulty, GivenDifficulty
from wisecrowd.simulate.dirichlet_workers import DirichletWorkers, FixedConfusion
from wisecrowd.simulate.diverse import DiverseWorkers
from wisecrowd.simulate.flippers import Adversaries, PairwiseFlippers
from wisecrowd.simulate.folder import write
from wisecrowd.simulate.glad_workers import GLADDifficulty, GLADWorkers
from wisecrowd.simulate.graded_workers import SimulatedGrades, graded_responses
from wisecrowd.simulate.graphs import Assignment, Bernoulli, Dense, LongTail, PerTask
from wisecrowd.simulate.hammer_spammer import ClassExperts, ClassWiseHammerSpammers, HammerSpammers
from wisecrowd.simulate.mace_workers import MACEWorkers
from wisecrowd.simulate.number_workers import SimulatedNumbers, numbers
from wisecrowd.simulate.one_coin_workers import OneCoinWorkers
from wisecrowd.simulate.presets import (
    ASSIGNMENTS,
    DIFFICULTIES,
    POPULATIONS,
    assignment,
    difficulty,
    population,
)
from wisecrowd.simulate.regular import Regular
from wisecrowd.simulate.simulator import SimulatedCrowd, crowd
from wisecrowd.simulate.span_workers import SimulatedSequences, sequences
from wisecrowd.simulate.two_coin import TwoCoinWorkers
from wisecrowd.simulate.uninformative_workers import AlwaysOneClass, ExtremeSpammers, Spammers
from wisecrowd.simulate.vote_workers import SimulatedVotes, VoteWorkers, votes
from wisecrowd.simulate.worker_population import Crowd, Population, PopulationMixture

Mixture = PopulationMixture  # the former name

__all__ = [
    "ASSIGNMENTS", "DIFFICULTIES", "POPULATIONS", "Adversaries", "AlwaysOneClass", "Assignment",
    "Bernoulli", "BetaDifficulty", "ClassExperts", "ClassWiseHammerSpammers", "Colluders",
    "Copiers", "Crowd", "Dense", "DependentGroup", "Difficulty", "DirichletWorkers",
    "DiverseWorkers", "ExtremeSpammers", "FixedConfusion", "GLADDifficulty", "GLADWorkers",
    "GivenDifficulty", "HammerSpammers", "LongTail", "MACEWorkers", "Mixture", "OneCoinWorkers",
    "PairwiseFlippers", "PerTask", "Population", "PopulationMixture", "Regular",
    "SimulatedBoxes", "SimulatedCrowd", "SimulatedGrades", "SimulatedNumbers", "SimulatedSequences",
    "SimulatedVotes", "Spammers", "TwoCoinWorkers", "VoteWorkers", "assignment", "boxes", "crowd",
    "difficulty", "graded_responses", "numbers", "population", "sequences", "votes", "write",
]  # fmt: skip
