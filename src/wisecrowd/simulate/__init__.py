"""Simulated crowds: workers with known errors, and assignments of tasks to workers.

>>> from wisecrowd import simulate
>>> workers = 30 * simulate.OneCoinWorkers(4, 2) + 5 * simulate.Spammers()
>>> simulate.crowd(1000, workers, simulate.PerTask(5), class_prior=[0.7, 0.3])
SimulatedCrowd(CrowdLabels(1000 tasks, 35 workers, 2 classes, 5000 annotations))

Three parts combine freely: worker populations (their errors), assignment graphs (the tasks of each
worker) and difficulties (how hard each task is).
"""

from wisecrowd.core.graphs import Assignment, Bernoulli, Dense, LongTail, PerTask, Regular
from wisecrowd.kinds.boxes.simulate import SimulatedBoxes, boxes
from wisecrowd.kinds.classes.simulate.confusion_workers import (
    Adversaries,
    DirichletWorkers,
    DiverseWorkers,
    FixedConfusion,
    MACEWorkers,
    OneCoinWorkers,
    PairwiseFlippers,
    TwoCoinWorkers,
)
from wisecrowd.kinds.classes.simulate.copiers import Colluders, Copiers, DependentGroup
from wisecrowd.kinds.classes.simulate.difficulty import (
    BetaDifficulty,
    Difficulty,
    GivenDifficulty,
    GLADDifficulty,
    GLADWorkers,
)
from wisecrowd.kinds.classes.simulate.simulator import SimulatedCrowd, crowd
from wisecrowd.kinds.classes.simulate.spammers import (
    AlwaysOneClass,
    ClassExperts,
    ClassWiseHammerSpammers,
    ExtremeSpammers,
    HammerSpammers,
    Spammers,
)
from wisecrowd.kinds.classes.simulate.worker_population import Crowd, Population, PopulationMixture
from wisecrowd.kinds.masks.simulate import SimulatedMasks, masks
from wisecrowd.kinds.numbers.simulate import SimulatedNumbers, numbers
from wisecrowd.kinds.ordered.simulate import SimulatedGrades, graded_responses
from wisecrowd.kinds.pairs.simulate import SimulatedVotes, VoteWorkers, votes
from wisecrowd.kinds.same.simulate import SimulatedSame, same_votes
from wisecrowd.kinds.sequences.simulate import SimulatedSequences, sequences
from wisecrowd.kinds.sets.simulate import SimulatedSets, sets
from wisecrowd.kinds.texts.simulate import SimulatedTexts, texts
from wisecrowd.simulate.folder import write
from wisecrowd.simulate.presets import (
    ASSIGNMENTS,
    DIFFICULTIES,
    POPULATIONS,
    assignment,
    difficulty,
    population,
)

__all__ = [
    "ASSIGNMENTS",
    "DIFFICULTIES",
    "POPULATIONS",
    "Adversaries",
    "AlwaysOneClass",
    "Assignment",
    "Bernoulli",
    "BetaDifficulty",
    "ClassExperts",
    "ClassWiseHammerSpammers",
    "Colluders",
    "Copiers",
    "Crowd",
    "Dense",
    "DependentGroup",
    "Difficulty",
    "DirichletWorkers",
    "DiverseWorkers",
    "ExtremeSpammers",
    "FixedConfusion",
    "GLADDifficulty",
    "GLADWorkers",
    "GivenDifficulty",
    "HammerSpammers",
    "LongTail",
    "MACEWorkers",
    "OneCoinWorkers",
    "PairwiseFlippers",
    "PerTask",
    "Population",
    "PopulationMixture",
    "Regular",
    "SimulatedBoxes",
    "SimulatedCrowd",
    "SimulatedGrades",
    "SimulatedMasks",
    "SimulatedNumbers",
    "SimulatedSame",
    "SimulatedSequences",
    "SimulatedSets",
    "SimulatedTexts",
    "SimulatedVotes",
    "Spammers",
    "TwoCoinWorkers",
    "VoteWorkers",
    "assignment",
    "boxes",
    "crowd",
    "difficulty",
    "graded_responses",
    "masks",
    "numbers",
    "population",
    "same_votes",
    "sequences",
    "sets",
    "texts",
    "votes",
    "write",
]  # fmt: skip
