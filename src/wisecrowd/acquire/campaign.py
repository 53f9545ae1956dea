"""Campaign: ask for labels and tell the answers, in a state that survives a crash."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.answer_log import Answer, AnswerIntake, AnswerLog, CampaignRounds
from wisecrowd.acquire.campaign_input import (
    answer_rows,
    check_together,
    checked_prices,
    class_list,
    digest_of,
    distinct,
    id_text,
)
from wisecrowd.acquire.campaign_store import CampaignStore, checked_settings
from wisecrowd.acquire.history import RoundRecord, StopReport, check_target
from wisecrowd.acquire.rounds import split_gold
from wisecrowd.acquire.suggesting import (
    MOST_QUERIES,
    AskingRules,
    Situation,
    choose_queries,
    round_state,
    stop_report,
    task_list,
)
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.container import CrowdLabels

LEASE_SECONDS = 3600.0
CATCH_UP_SECONDS = 0.01  # after which the answers that have arrived have their turn
EVERY = 0.01  # answers between refits, as a share of the tasks


class Query(NamedTuple):
    """A question to a worker: the number of the query, task, worker, score and reason."""

    id: int
    task: Any
    worker: Any
    score: float
    reason: str


class Campaign:
    """A campaign: which queries are open, which answers are there, and what to ask next.

    Parameters
    ----------
    tasks : sequence of ids
        Everything that may be asked about.
    classes : sequence of ids, optional
        All classes; a label outside is refused. Without it labels define the classes.
    workers : sequence of ids, optional
        Known workers; others join with their first answer or query.
    model : "auto", "one-coin" or "confusion"
        Model that drives the choice.
    policy : str
        "uncertain" (the default), "balanced", "random", "margin", "information",
        "epsilon-greedy", "best-worker" or "bandit".
    budget : float, optional
        Total cost of all answers.
    min_labels, max_labels : int, int or None
        Labels that every task gets first, and its maximum; open queries count.
    max_per_worker : int, optional
        Most labels of one worker.
    gold : mapping from task to class, optional
        Gold questions.
    gold_share : float
        Share of queries that are gold questions; 0 asks none.
    cost : mapping from worker to cost, optional
        Cost of an answer; 1 by default.
    stop : float or None
        Stop when fewer labels change per answer.
    target : float, optional
        Stop at this accuracy on gold; half of the gold is then held out from the fits.
    random_state : int
    path : path, optional
        Database of the campaign. A file that exists is continued. By default in memory.
    lease_seconds : float
        Time after which an unanswered query may be asked again.
    open_tasks : bool
        Accept answers about tasks that are not in ``tasks``.

    Examples
    --------
    >>> campaign = Campaign(["t1", "t2"], classes=["cat", "dog"])
    >>> [query.task for query in campaign.ask(2, workers=["ann"])]
    ['t2', 't1']
    >>> campaign.tell("t1", "ann", "cat")
    True
    >>> campaign.labels
    CrowdLabels(2 tasks, 1 workers, 2 classes, 1 annotations)
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        classes: Sequence[Any] | None = None,
        workers: Sequence[Any] | None = None,
        model: str = "auto",
        policy: str = "uncertain",
        budget: float | None = None,
        min_labels: int = 1,
        max_labels: int | None = None,
        gold: Any = None,
        gold_share: float = 0.0,
        cost: Any = None,
        stop: float | None = 0.03,
        random_state: int = 0,
        *,
        max_per_worker: int | None = None,
        target: float | None = None,
        path: Any = None,
        lease_seconds: float = LEASE_SECONDS,
        open_tasks: bool = False,
    ) -> None:
        rules = AskingRules(
            policy=policy, model=model, budget=budget, min_labels=min_labels,
            max_labels=max_labels, max_per_worker=max_per_worker, gold_share=gold_share, stop=stop,
            target=target, random_state=random_state,
        )  # fmt: skip
        rules.check()
        if not isinstance(model, str):
            raise ParameterError("model of a campaign is auto, one-coin or confusion.")
        check_number("lease_seconds", lease_seconds, 0.0)
        listed = task_list(list(tasks))
        known = {} if gold is None else {id_text(k): id_text(v) for k, v in dict(gold).items()}
        names = class_list(classes, known, listed)
        joined = distinct(workers)
        check_together(names, "classes")
        check_together(joined, "workers")
        check_target(target, (len(known) + 1) // 2)
        settings = {
            "rules": asdict(rules), "cost": checked_prices(cost), "gold": known,
            "closed": classes is not None, "lease_seconds": float(lease_seconds),
            "open_tasks": bool(open_tasks), "every": max(1, int(np.ceil(EVERY * len(listed)))),
            "tasks": digest_of(listed), "classes": digest_of(names),
        }  # fmt: skip
        store = CampaignStore(path)
        with store.transaction():
            if store.get("settings") is None:
                store.set("settings", settings)
                store.add_ids("tasks", listed.tolist(), 0)
                store.set("n_classes", len(names))
                store.add_ids("classes", names, 0)
                store.add_ids("workers", joined, 0)
        if store.get("settings") != json.loads(json.dumps(settings, default=float)):
            raise DataError(
                f"{path} holds a campaign with other settings; "
                + for_reader("continue it with Campaign.open(path)", "leave out the settings")
                + ", or give another path."
            )
        self._begin(store)

    @classmethod
    def open(cls, path: Any) -> Campaign:
        """Continue the campaign of a database."""
        store = CampaignStore(path)
        if store.get("settings") is None:
            start = for_reader("Campaign(tasks, path=...)", "wisecrowd loop FOLDER --tasks FILE")
            raise DataError(f"{path} holds no campaign; start one with {start}.")
        made = cls.__new__(cls)
        made._begin(store)
        return made

    def _begin(self, store: CampaignStore) -> None:
        self._store = store
        settings = checked_settings(store)
        self.rules = AskingRules(**settings["rules"])
        self._settings = settings
        self._log = AnswerLog(store)
        self._intake = AnswerIntake(store, self._log, settings)
        with self._log.transaction():
            self._questions, self._scoring = self._gold()
            self._rounds = CampaignRounds(
                store, self._log, self.rules.model, int(settings["every"]), self._questions,
                self._scoring,
            )  # fmt: skip
        for note in self._log.notes():
            warnings.warn(f"{store.path}: {note}", WisecrowdWarning, stacklevel=3)

    def _gold(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the gold in the fits and the gold held out, -1 for other tasks."""
        gold = np.full(len(self._log.ids["tasks"]), -1, dtype=np.int32)
        for task, label in self._settings["gold"].items():
            i, k = (self._log.find(*one) for one in
                    (("tasks", json.loads(task)), ("classes", json.loads(label))))  # fmt: skip
            if i is not None and k is not None:
                gold[i] = k
        rng = np.random.default_rng([self.rules.random_state, 5])
        return split_gold(gold, self.rules.target, rng)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Run a block as one transaction; if it fails, this object is as before it too."""
        with self._rounds.restored_on_error(), self._log.transaction():
            yield

    # -------------------------------------------------------------------------------- answers

    def tell(
        self, task: Any, worker: Any, label: Any, timestamp: float | None = None, id: Any = None
    ) -> bool:
        """Store an answer; it is on the disk when this returns.

        Parameters
        ----------
        task, worker, label : ids
            The last answer of a worker about a task counts. A label of None withdraws it.
        timestamp : float, optional
            Kept, but not used: the order of answers is that of their arrival.
        id : text or number, optional
            Key of the delivery; an answer with the same key is stored once.

        Returns
        -------
        bool
            False if the answer was there already.
        """
        return self.tell_many([(task, worker, label, timestamp, id)]) == 1

    def tell_many(self, answers: Any) -> int:
        """Store many answers in one transaction, all or none, and return how many are new.

        ``answers`` is a frame with the columns task, worker, label and optionally timestamp and
        id, or an iterable of such tuples.
        """
        (found,) = self.tell_groups([list(answer_rows(answers))])
        if isinstance(found, WisecrowdError):
            raise found
        return found

    def tell_groups(self, groups: Sequence[list[Answer]]) -> list[int | WisecrowdError]:
        """Store groups of answers, each all or none, in one transaction.

        It returns for each group how many of its answers are new, or the error for which nothing
        of it was stored.
        """
        found: list[int | WisecrowdError] = []
        with self._changing():
            for answers in groups:
                try:
                    with self._log.part():
                        found.append(sum(self._intake.add(*row) for row in answers))
                except (DataError, ParameterError) as error:
                    found.append(error)
        return found

    # -------------------------------------------------------------------------------- queries

    def ask(self, n: int, workers: Sequence[Any] | None = None) -> list[Query]:
        """Return up to ``n`` queries and lease them; an empty list if there is nothing to ask.

        Parameters
        ----------
        n : int
        workers : sequence of ids, optional
            Workers who are available now; without it the queries are for anybody.
        """
        with self._changing():
            self._expire()
            return self._lease(self._choose(n, workers))

    def catch_up(self) -> bool:
        """Refit for a moment, in a transaction of its own; return whether refits are still due.

        Whoever asks or looks next needs all of them. Many may be due after many answers, and other
        answers would wait for them if they were one transaction.
        """
        with self._changing():
            return self._rounds.advance(CATCH_UP_SECONDS)

    def preview(self, n: int, workers: Sequence[Any] | None = None) -> list[Query]:
        """Return the queries that ``ask`` would return, with the number 0 and without leases.

        Workers do not join by it: if nobody in ``workers`` is known, the queries are for anybody.
        """
        known = None if workers is None or isinstance(workers, str) else workers
        with self._changing():
            self._expire()
            if known is not None:
                known = [one for one in known if self._log.find("workers", one) is not None]
            chosen = self._choose(n, workers if isinstance(workers, str) else known or None)
        return [Query(0, *columns) for columns in self._named(chosen)]

    def _choose(self, n: int, workers: Sequence[Any] | None) -> Any:
        check_integer("n", n, 1, MOST_QUERIES)
        if isinstance(workers, str):
            raise ParameterError(f"workers is {workers!r}; give a list of workers.")
        available = None
        if workers is not None:
            codes = [self._log.code("workers", worker) for worker in workers]
            available = np.unique(np.array(codes, dtype=np.int64))
        self._rounds.advance()
        situation = self._situation()
        seed = [situation.n_asked, situation.n_answers]
        return choose_queries(situation, self.rules, available, n, seed)

    def _named(self, chosen: Any) -> Iterator[tuple[Any, Any, float, str]]:
        """Yield task, worker, score and reason of queries, in the user's ids."""
        tasks, workers = self._log.ids["tasks"], self._log.ids["workers"]
        columns = (chosen.pairs.task.tolist(), chosen.pairs.worker.tolist(),
                   chosen.score.tolist(), chosen.reason)  # fmt: skip
        for i, j, score, reason in zip(*columns, strict=True):
            yield tasks[i], None if j < 0 else workers[j], score, reason

    def _lease(self, chosen: Any) -> list[Query]:
        made = []
        expires = time.time() + self._settings["lease_seconds"]
        codes = zip(chosen.pairs.task.tolist(), chosen.pairs.worker.tolist(), strict=True)
        for (i, j), named in zip(codes, self._named(chosen), strict=True):
            number = self._store.run(
                "INSERT INTO queries (task, worker, score, reason) VALUES (?, ?, ?, ?)",
                (i, None if j < 0 else j, *named[2:]),
            ).lastrowid
            self._store.run("INSERT INTO leases VALUES (?, ?)", (number, expires))
            made.append(Query(int(number or 0), *named))
        return made

    def release(self, query: Query | int) -> bool:
        """Give up a query, so that it may be asked again; return whether it was open."""
        number = query if isinstance(query, int) else query.id
        with self._changing():
            found = self._store.run("DELETE FROM leases WHERE query = ?", (number,)).rowcount > 0
            if found:
                self._event("released", str(number))
        return found

    def open_queries(self, worker: Any = None) -> list[Query]:
        """Return the queries that wait for an answer, of all workers or of one."""
        with self._changing():
            self._expire()
            rows = self._store.rows(
                "SELECT id, task, worker, score, reason FROM queries JOIN leases ON query = id "
                "ORDER BY id"
            )
        tasks, workers = self._log.ids["tasks"], self._log.ids["workers"]
        odd_tasks, odd_workers = (self._log.lists[name].left_out for name in ("tasks", "workers"))
        made = [
            Query(number, tasks[i], None if j is None else workers[j], score, reason)
            for number, i, j, score, reason in rows
            if i not in odd_tasks and j not in odd_workers
        ]
        return [one for one in made if worker is None or one.worker == worker]

    def _expire(self) -> None:
        now = time.time()
        latest = now + self._settings["lease_seconds"]  # a clock that was set back may exceed it
        if self._store.rows("SELECT 1 FROM leases WHERE expires > ? LIMIT 1", (latest,)):
            self._store.run("UPDATE leases SET expires = ? WHERE expires > ?", (latest, latest))
        rows = self._store.rows(
            "SELECT query FROM leases WHERE expires <= ? ORDER BY query", (now,)
        )
        for (number,) in rows:
            self._store.run("DELETE FROM leases WHERE query = ?", (number,))
            self._event("expired", str(number))

    def _event(self, kind: str, detail: str) -> None:
        self._store.run("INSERT INTO events (kind, detail) VALUES (?, ?)", (kind, detail))

    # ---------------------------------------------------------------------------------- state

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self._log.ids["tasks"]) - len(self._log.lists["tasks"].left_out)

    @property
    def n_answers(self) -> int:
        """Number of answers, with those that were replaced or withdrawn."""
        return int(self._store.rows("SELECT COUNT(*) FROM answers")[0][0])

    @property
    def labels(self) -> CrowdLabels:
        """All answers that count."""
        with self._changing():
            return self._log.usable_labels()

    def stop_report(self, workers: Sequence[Any] | None = None) -> StopReport:
        """Return whether to stop asking, and why.

        Parameters
        ----------
        workers : sequence of ids, optional
            Available workers; "nothing left" is then about these.
        """
        with self._changing():
            self._rounds.advance()
            available = None
            if workers is not None:
                codes = [self._log.find("workers", worker) for worker in workers]
                available = np.array([j for j in codes if j is not None], dtype=np.int64)
                if None in codes:
                    available = None  # a new worker can answer every task
            return stop_report(self._situation(), self.rules, available)

    def rounds(self) -> list[RoundRecord]:
        """Return the refits so far: answers used, advantages over habit, labels that changed."""
        return list(self._rounds.history.records)

    def judged_workers(self) -> list[dict[str, Any]]:
        """Return, for each worker, its labels, agreement with others, and whether it is poor."""
        with self._changing():
            self._rounds.advance()
            count = self._log.labels(self._log.n_answers).labels_per_worker
            gate, ids = round_state(self._situation(), self.rules).gate, self._log.ids["workers"]
        columns = (ids, count.tolist(), gate.mean.tolist(), gate.judged.tolist(),
                   gate.poor.tolist())  # fmt: skip
        return [
            {"worker": worker, "labels": n, "agreement": mean if judged else None, "poor": poor}
            for j, (worker, n, mean, judged, poor) in enumerate(zip(*columns, strict=True))
            if j not in self._log.lists["workers"].left_out
        ]

    def fit(self, method: Any = "auto", **parameters: Any) -> Any:
        """Fit a method to the answers and return it; ``gold`` counts as known classes."""
        made = get_method(method)(**parameters) if isinstance(method, str) else method
        labels = self.labels
        tasks, classes = (self._log.lists[name].names() for name in ("tasks", "classes"))
        known = {tasks[i]: classes[k] for i, k in enumerate(self._questions.tolist()) if k >= 0}
        return made.fit(labels, gold=known or None)

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _situation(self) -> Situation:
        log = self._log
        now, fitted = log.labels(log.n_answers), log.labels(self._rounds.covered)
        leases = self._store.rows(
            "SELECT task, worker FROM leases JOIN queries ON query = id ORDER BY id"
        )
        leased = np.array(
            [(i, -1 if j is None else j) for i, j in leases], dtype=np.int64
        ).reshape(-1, 2)  # fmt: skip
        n_asked = self._store.rows("SELECT COALESCE(MAX(id), 0) FROM queries")[0][0]
        askable = np.ones(now.n_tasks, dtype=bool)
        askable[list(log.lists["tasks"].left_out)] = False
        prices = self._settings["cost"]
        cost = np.array([prices.get(id_text(worker), 1.0) for worker in log.ids["workers"]])
        return Situation(
            now, self._rounds.history, log.padded(self._questions), log.padded(self._scoring),
            askable, cost.reshape(-1), log.spent, log.n_answers, int(n_asked), leased, fitted,
        )  # fmt: skip
