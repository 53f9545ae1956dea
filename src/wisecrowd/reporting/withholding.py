"""Workers with few labels, who are not named in shared reports.

A few labels contain little information about a worker, but may identify the person. Such workers
count in every sum, but no table, finding or sentence names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wisecrowd.audit.crowd_audit import Findings
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.ids.encoding import is_text_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.pseudonyms import PSEUDONYM

FEWEST = 5  # minimum number of labels of workers in shared reports
WITHHELD = "(withheld)"


@dataclass(frozen=True)
class Withheld:
    """Workers who are not named.

    Attributes
    ----------
    workers : frozenset of str
        Their pseudonyms.
    fewest : int
        Minimum number of labels of a named worker.
    """

    workers: frozenset[str]
    fewest: int

    @classmethod
    def below(cls, labels: Annotations, fewest: int) -> Withheld:
        """Return the workers with fewer labels than the limit.

        Raises
        ------
        ParameterError
            If workers have no pseudonyms: other ids cannot be recognised in a sentence.
        """
        few = labels.workers[labels.labels_per_worker < fewest].tolist()
        if not all(isinstance(one, str) and PSEUDONYM.fullmatch(one) for one in few):
            raise ParameterError(
                "Workers with few labels can be withheld only if they have pseudonyms; give "
                + for_reader(
                    "wisecrowd.pseudonymize(labels, key) instead of the labels.",
                    "--pseudonymize KEYFILE.",
                )
            )
        return cls(frozenset(few), fewest)

    def text(self, sentence: str) -> str:
        """Return a sentence without their names."""
        return PSEUDONYM.sub(
            lambda found: WITHHELD if found.group() in self.workers else found.group(), sentence
        )

    def anywhere(self, value: Any) -> Any:
        """Return plain data whose texts do not name them, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.anywhere(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.anywhere(item) for item in value]
        return value

    def findings(self, findings: Findings) -> Findings:
        """Return the findings without their names."""
        return Findings(
            replace(
                found,
                affected=tuple(self.anywhere(list(found.affected))),
                explanation=self.text(found.explanation),
                remedy=self.text(found.remedy),
                examples=tuple(self.anywhere(list(found.examples))),
            )
            for found in findings
        )

    def table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return a table without their rows."""
        columns = {name: np.asarray(values) for name, values in table.items()}
        keep = np.ones(len(next(iter(columns.values()), ())), dtype=bool)
        for values in columns.values():
            if is_text_ids(values):
                ours = [isinstance(value, str) and value in self.workers for value in values]
                keep &= ~np.array(ours, dtype=bool)
        return {name: self._column(values[keep]) for name, values in columns.items()}

    def _column(self, values: Any) -> Any:
        if not is_text_ids(values):
            return values
        named = np.empty(len(values), dtype=object)
        named[:] = [self.text(value) if isinstance(value, str) else value for value in values]
        return named

    def summary(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        """Return the summary without these workers, but with their number."""
        made = dict(summary)
        workers = dict(made["workers"])
        rows = [row for row in workers["rows"] if row["worker"] not in self.workers]
        workers |= {
            "rows": rows,
            "n_shown": len(rows),
            "n_detailed": sum(row.get("confusion") is not None for row in rows),
            "total": workers["total"] - len(self.workers),
            "n_withheld": len(self.workers),
            "withheld_below": self.fewest,
        }
        network = dict(made.get("network") or {})
        if network.get("rows") is not None:
            network |= {
                "rows": [
                    row
                    for row in network["rows"]
                    if not {row["first"], row["second"]} & self.workers
                ],
                "graph": self._graph(network["graph"]),
            }
        made["workers"] = workers
        if network:
            made["network"] = network
        for name in ("sides", "bias", "shared"):  # rows about workers
            if name in made:
                kept = [row for row in made[name]["rows"] if not self.workers & _names(row)]
                made[name] = {**made[name], "rows": kept}
        found: dict[str, Any] = self.anywhere(made)
        return found

    def _graph(self, graph: Mapping[str, Any]) -> dict[str, Any]:
        kept = [n for n, node in enumerate(graph["nodes"]) if node["worker"] not in self.workers]
        place = {old: new for new, old in enumerate(kept)}
        return {
            **graph,
            "nodes": [graph["nodes"][n] for n in kept],
            "edges": [[place[a], place[b]] for a, b in graph["edges"] if {a, b} <= place.keys()],
            "cells": [
                [place[a], place[b], *rest]
                for a, b, *rest in graph.get("cells", ())
                if {a, b} <= place.keys()
            ],
        }


def _names(row: Mapping[str, Any]) -> set[str]:
    return {str(row[name]) for name in ("worker", "first", "second") if name in row}
