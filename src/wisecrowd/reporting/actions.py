"""Actions: what a suggested command does to the labels or to the method."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.late_labels import late_labels
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.registry import get_method

Mask = NDArray[np.bool_]
SPAMMERS = ("spammers", "voters")  # parts of an audit that name workers to prune


@dataclass(frozen=True)
class Action:
    """Effect of a command on the data and on the method; nothing by default.

    Attributes
    ----------
    removes : tuple of str
        What is pruned: "clones", "collusion" or "spammers".
    unlabelled : str
        What happens to tasks that would lose all labels, as in `wisecrowd.audit.prune`.
    moments : mapping of worker to time
        Labels after these times are dropped.
    method : str, optional
        Method that is used instead of the reported one.
    parameters : mapping
        Its parameters.
    needs : str
        File that the user has to make first, such as "gold.csv"; the effect depends on it.
    calibrates : bool
        Whether the command changes the confidences only.
    """

    removes: tuple[str, ...] = ()
    unlabelled: str = "refuse"
    moments: Mapping[Any, Any] = field(default_factory=dict)
    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""
    calibrates: bool = False

    @property
    def changes_labels(self) -> bool:
        """Whether the labels of tasks may change."""
        return bool(self.removes or self.moments or self.method is not None)

    @classmethod
    def of(cls, template: str, moments: Mapping[Any, Any], method: str) -> Action:
        """Return the action of a command, given as in ``verdict.COMMANDS``.

        Examples
        --------
        >>> Action.of("audit {file} --prune-to cleaned.csv", {}, "auto").removes
        ('spammers',)
        >>> Action.of("aggregate {file} -m glad -o labels.csv", {}, "auto").method
        'glad'
        """
        words = shlex.split(template)
        pairs = list(itertools.pairwise(words))
        given = {name: [value for word, value in pairs if word == name]
                 for name in ("--prune", "-m", "-p", "--gold", "--unlabelled")}  # fmt: skip
        if "--prune-to" in words:
            return cls(
                removes=tuple(given["--prune"] or ["spammers"]),
                unlabelled=(given["--unlabelled"] or ["refuse"])[0],
            )
        if given["--gold"]:
            return cls(needs=given["--gold"][0])
        if "{drop}" in words:
            return cls(moments=moments)
        if words[0] != "aggregate":
            return cls()
        if "--calibrate" in words:
            return cls(calibrates=True)
        named = [method if one == "{method}" else one for one in given["-m"]]
        chosen = named[0] if named else method
        parameters = dict(_parameter(one) for one in given["-p"])
        if chosen == "{reported}":
            return cls()
        return cls(method=chosen, parameters=parameters)

    def unfitted(self, base: Any) -> Any:
        """Return the method to fit: that of the action, or a copy of the reported one."""
        if self.method is None:
            return base._for_refit()
        return get_method(self.method)(**self.parameters)


def _parameter(text: str) -> tuple[str, Any]:
    """Return a name and its value; true and numbers have their types."""
    name, _, value = text.partition("=")
    if value in ("true", "false"):
        return name, value == "true"
    return name, int(value) if value.isdecimal() else value


@dataclass(frozen=True, eq=False)
class Applied:
    """An action on some data: what it removes, and how it changes a selection of the rows.

    Attributes
    ----------
    workers : (n_workers,) bool
        Workers who are removed, or merged into another one.
    spared : (n_workers,) bool
        Accused workers who stay, because some tasks have no labels of others.
    rows : (n_annotations,) bool
        Annotations that are removed.
    clones : part of the audit with the groups to merge, or None
    """

    workers: Mask
    spared: Mask
    rows: Mask
    moments: Mapping[Any, Any]
    clones: Any = None

    def to(self, some: Any) -> Any:
        """Return some of the annotations as the action leaves them; all vocabularies stay."""
        from wisecrowd.audit.clones import merged_clones

        if self.clones is not None:
            some = merged_clones(some, self.clones)[0]
        keep = ~self.workers[some.worker]
        if self.moments:
            keep &= ~late_labels(some, self.moments)
        return some if keep.all() else some.select_annotations(keep)


def apply(action: Action, data: Annotations, parts: Mapping[str, Any]) -> Applied | None:
    """Return what an action does to data, from the parts of their audit; None if unknown."""
    from wisecrowd.audit.pruning import removable

    nobody = np.zeros(data.n_workers, dtype=bool)
    done = Applied(nobody, nobody, np.zeros(data.n_annotations, dtype=bool), action.moments)
    if action.moments:
        done = replace(done, rows=late_labels(data, action.moments))
    for what in action.removes:
        names = SPAMMERS if what == "spammers" else (what,)
        part = next((parts[name] for name in names if name in parts), None)
        if part is None:
            return None
        if what == "clones":
            merged = part.group >= 0
            first = np.unique(part.group[merged], return_index=True)[1]
            gone = merged.copy()
            gone[np.flatnonzero(merged)[first]] = False
            done = replace(done, clones=part, workers=done.workers | gone)
            continue
        accused = np.array(part.accused)
        if done.clones is not None:
            accused &= done.clones.group < 0  # merged copies are not accused again
        gone = accused
        if isinstance(data, CrowdLabels):  # other kinds drop tasks instead of sparing workers
            gone = removable(data, accused, action.unlabelled)
        done = replace(done, workers=done.workers | gone, spared=done.spared | (accused & ~gone))
    return replace(done, rows=done.rows | done.workers[data.worker])
