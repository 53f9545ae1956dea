"""Engine that reads a pack, one shard at a time, and what engines of packs share.

Statistics are added along a binary tree over the shards. A block of shards is a subtree, so a fit
has the same bits wherever and in whatever blocks its shards are processed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from wisecrowd.core.exceptions import DataError
from wisecrowd.packs.answers import AnswerParts, PartPlan
from wisecrowd.packs.arrays import check_shard, check_vocabularies
from wisecrowd.packs.pack import Pack, load_shard
from wisecrowd.packs.values import digest_of_values, read_values, write_values
from wisecrowd.storage.work_folder import clear_files

_ENTRY = "pass-{:05d}"
# Files of a journal: finished passes, the states of shards, and both while they are written.
JOURNAL_FILES = re.compile(r"\.?(pass-\d{5}|state-\d{5}-\d{5})(\.[0-9a-f]{8}\.tmp)?")


class Entry(NamedTuple):
    """A finished pass: the digest of its model, step and parameters, and its statistics."""

    key: str
    stats: Any


class Journal:
    """Statistics of finished passes in a folder.

    A fit that is started again repeats what its driver did and takes the statistics of finished
    passes from here, so that it ends with the same bits as one that was never interrupted.

    Parameters
    ----------
    folder : Path
    resume : bool
        Whether to use the passes of a previous run; otherwise they are deleted.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.folder = folder
        self.n_taken = 0
        self._next = 0
        if not resume:
            clear_files(folder, JOURNAL_FILES)
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def is_empty(self) -> bool:
        """Whether there is no finished pass."""
        return not any(self.folder.glob("pass-*"))

    def next_pass(self) -> int:
        """Return the number of the next pass."""
        self._next += 1
        return self._next

    def find(self, number: int, key: str, package: str) -> Entry | None:
        """Return a finished pass, or None; one with another key means another fit.

        A pass whose file is damaged, as after a power failure, is not finished.
        """
        file = self.folder / _ENTRY.format(number)
        if not file.exists():
            return None
        try:
            entry = read_values(file, package, verify=True)
        except DataError:
            return None
        if not isinstance(entry, Entry) or entry.key != key:
            raise DataError(
                f"{self.folder} belongs to another fit: method, parameters or pack differ; start "
                "without resuming, or choose another folder."
            )
        self.n_taken += 1
        return entry

    def add(self, number: int, key: str, stats: Any) -> None:
        """Keep the statistics of a pass."""
        write_values(self.folder / _ENTRY.format(number), Entry(key, stats))


LARGE = 1 << 20  # bytes of statistics that are added in place


class StatePlan(NamedTuple):
    """Files with the states of shards: those before a pass, and those after it.

    Attributes
    ----------
    folder : str
    before : int or None
        The pass whose states are used; None begins.
    after : int or None
        The pass that is run; None keeps no states.
    """

    folder: str
    before: int | None
    after: int | None

    def load(self, model: Any, shard: Any) -> Any:
        """Return the state of a shard before the pass."""
        if self.before is None:
            return model.begin(shard)
        file = self._file(self.before, shard.number)
        return read_values(file, package_of(model), verify=True)

    def save(self, shard: Any, state: Any) -> None:
        """Keep the state of a shard after the pass."""
        if self.after is not None:
            write_values(self._file(self.after, shard.number), state)

    def _file(self, number: int, shard: int) -> Path:
        return Path(self.folder) / f"state-{number:05d}-{shard:05d}"

    def drop(self, number: int | None, n_shards: int) -> None:
        """Delete the states of a pass."""
        for shard in range(0 if number is None else n_shards):
            self._file(number or 0, shard).unlink(missing_ok=True)


class Job(NamedTuple):
    """A step to run on shards: ``model.step(shard, state, params)``.

    Attributes
    ----------
    model : Any
    step : str
    params : Any
    parts : PartPlan or None
        Where answers go; None for steps that only return statistics.
    states : StatePlan or None
        Where the states of shards are, for models that keep them between passes.
    """

    model: Any
    step: str
    params: Any
    parts: PartPlan | None = None
    states: StatePlan | None = None


@dataclass(frozen=True)
class ShardCheck:
    """Model of the pass before all others, which runs no step: the content of shards is checked."""


def run_shard(pack: Pack, number: int, job: Job) -> Any:
    """Return the statistics of a step on one shard; with parts, also the sums of the answers."""
    return run_on(pack, load_shard(pack, number), job)


def run_on(pack: Pack, shard: Any, job: Job) -> Any:
    """Return the statistics of a step on a shard that is open."""
    state = job.model.begin(shard) if job.states is None else job.states.load(job.model, shard)
    result, stats = getattr(job.model, job.step)(shard, state, job.params)
    if job.states is not None:
        job.states.save(shard, result)
    if job.parts is None:
        return stats
    return stats, pack.kind.write(pack, shard, result, job.parts)


def run_block(pack: Pack, first: int, size: int, job: Job) -> Any:
    """Return the sum of a step's statistics over an aligned block of shards."""
    if isinstance(job.model, ShardCheck):
        for number in range(first, first + size):
            check_shard(pack, number)
        return 0
    if size == 1:
        return run_shard(pack, first, job)
    half = size // 2
    return add(run_block(pack, first, half, job), run_block(pack, first + half, half, job))


def add(left: Any, right: Any) -> Any:
    """Return the sum of two statistics: numbers, arrays, or tuples of these.

    Large arrays are added in place, because fresh memory costs more than the sum.
    """
    if not isinstance(left, tuple):
        if getattr(left, "nbytes", 0) < LARGE or not left.flags.owndata or not left.flags.writeable:
            return left + right
        left += right
        return left
    parts = [add(a, b) for a, b in zip(left, right, strict=True)]
    return left._make(parts) if hasattr(left, "_make") else tuple(parts)


Runner = Callable[[Pack, Job], Any]


def run_here(pack: Pack, job: Job) -> Any:
    """Run a job on all shards in this process, one after the other."""
    return run_block(pack, 0, len(pack.summary.shards), job)


@dataclass(frozen=True)
class FilesEngine:
    """Engine that reads a pack, one shard at a time.

    Parameters
    ----------
    journal : Journal
        Keeps the statistics of finished passes.
    run : callable
        Runs a job on all shards.
    """

    journal: Journal
    run: Runner = field(default=run_here)

    def cut(self, data: Any, prior: Any, table_size: int) -> PackShards:
        """Return the shards of the pack."""
        return PackShards(data.pack, self)


class PackShards:
    """Shards of a pack: run a model's steps on all of them."""

    keeps_states = False

    def __init__(self, pack: Pack, engine: FilesEngine) -> None:
        self.pack, self.engine = pack, engine
        self._before: dict[int, int | None] = {}  # pass -> the pass whose states it used

    def __len__(self) -> int:
        return len(self.pack.summary.shards)

    def begin(self, model: Any) -> list[Any]:
        """Return no states: ``model.begin(shard)`` runs before every step.

        The states of a model that declares ``stateful`` are files; these are the passes that made
        them. Its steps in ``reads`` do not change them.
        """
        return [None] * len(self)

    def map_reduce(
        self, model: Any, step: str, states: Sequence[Any], params: Any
    ) -> tuple[list[Any], Any]:
        """Run ``model.step(shard, state, params)`` on every shard; return the sum of statistics."""
        job, journal = Job(model, step, params), self.engine.journal
        number, before, after = journal.next_pass(), states[0], list(states)
        key = digest_of_values((self.pack.digest, job, before))
        if getattr(model, "stateful", False):
            changes = step not in getattr(model, "reads", ())
            plan = StatePlan(str(journal.folder), before, number if changes else None)
            job = job._replace(states=plan)
            if changes:
                after, self._before[number] = [number] * len(self), before
        found = journal.find(number, key, package_of(model))
        if found is not None:
            return after, found.stats
        stats = self._run(job)
        journal.add(number, key, stats)
        if job.states is not None and before is not None and after[0] == number:
            job.states.drop(self._before[before], len(self))
        return after, stats

    def collect(
        self, model: Any, step: str, states: Sequence[Any], params: Any, sink: AnswerParts
    ) -> Any:
        """Run a step whose rows are answers; they are written where they are computed."""
        plan = None
        if getattr(model, "stateful", False):
            plan = StatePlan(str(self.engine.journal.folder), states[0], None)
        job = Job(model, step, params, sink.plan, plan)
        stats, sums = self._run(job)
        sink.take(sums, job)
        return stats

    def _run(self, job: Job) -> Any:
        """Run a job on all shards; few distinct rows run here, and shards only write answers.

        Before the first job the engine checks the content of all shards.
        """
        rows = None if job.states is not None else self.pack.kind.merged(self.pack)
        if not self.pack.is_checked:
            check_vocabularies(self.pack)
            (self.engine.run if rows is None else run_here)(self.pack, Job(ShardCheck(), "", None))
            self.pack.is_checked = True
        if rows is None:
            return self.engine.run(self.pack, job)
        if job.parts is None:
            return run_on(self.pack, rows, job)
        if job.parts.folder is not None:
            self.engine.run(self.pack, job)
        return run_on(self.pack, rows, job._replace(parts=replace(job.parts, folder=None)))


def package_of(model: Any) -> str:
    """Return the package that a model's class comes from."""
    return type(model).__module__.split(".")[0]


def scratch_beside(output: Path) -> Path:
    """Return the folder in which a fit with an output keeps its progress."""
    return output.with_name(output.name + ".scratch")
