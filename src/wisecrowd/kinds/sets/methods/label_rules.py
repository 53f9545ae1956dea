r"""Rules of sets of classes: exclusive groups, and classes that imply others.

The classes form a forest: a class can only be in a set with its parent. The children of a class (or
the classes without a parent) form blocks. At most one class of an exclusive group is in the set; a
class outside of all groups is a block of its own. Given the parent, a block chooses one of its
members or none,

.. math::
    P(z) = \prod_{b:\,z_{parent(b)} = 1} \beta_{z_b}, \qquad \beta_{none} + \sum_k \beta_k = 1,

so that sums over all allowed sets are exact and linear in the number of classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.sets.container import CrowdSets

TINY = 1e-12


class Level(NamedTuple):
    """Classes of one depth, with the members of a block next to each other.

    Attributes
    ----------
    members : (n,) int64
    starts : (n_blocks,) int64
        Position of the first member of each block.
    place : (n,) int64
        Block of each member.
    parent : (n_blocks,) int64
        Parent of each block, -1 if it has none.
    """

    members: Longs
    starts: Longs
    place: Longs
    parent: Longs

    def sums(self, table: Floats) -> Floats:
        """Return the sums of (..., n_classes) over the members of each block."""
        return np.asarray(np.add.reduceat(table[..., self.members], self.starts, axis=-1))


@dataclass(frozen=True, eq=False)
class LabelRules:
    """Which sets are allowed.

    Attributes
    ----------
    parent : (n_classes,) int64
        The class that a class implies, -1 if none.
    group : (n_classes,) int64
        Number of the block of each class.
    """

    parent: Longs
    group: Longs

    @classmethod
    def none(cls, n_classes: int) -> LabelRules:
        """Return the rules that allow every set."""
        return cls(np.full(n_classes, -1), np.arange(n_classes))

    @classmethod
    def of(cls, classes: NDArray[Any], exclusive: Any, implies: Any) -> LabelRules:
        """Return the rules that a user gives by the names of classes.

        Parameters
        ----------
        classes : (n_classes,) str
        exclusive : sequence of groups of classes, optional
            At most one class of each group is in a set.
        implies : mapping of class to class, optional
            The first is only in sets with the second.
        """
        place = {str(name): k for k, name in enumerate(classes.tolist())}
        parent, group = np.full(len(place), -1), np.arange(len(place))
        for child, above in (implies or {}).items():
            parent[_code(child, place, "implies")] = _code(above, place, "implies")
        _refuse_circles(parent, classes)
        taken: set[int] = set()
        for names in exclusive or ():
            codes = [_code(name, place, "exclusive") for name in names]
            for code in codes:
                if code in taken or parent[code] != parent[codes[0]]:
                    why = "is in two groups" if code in taken else (
                        f"does not imply the same class as {classes[codes[0]]!r}"
                    )  # fmt: skip
                    raise ParameterError(
                        f"exclusive names {classes[code]!r}, which {why}; put classes in one group "
                        "at most, with others that imply the same class or none."
                    )
                taken.add(code)
            group[codes] = len(place) + min(codes)
        return cls(parent, np.unique(group, return_inverse=True)[1].astype(np.int64))

    @cached_property
    def are_none(self) -> bool:
        """Whether every set is allowed."""
        return bool((self.parent < 0).all()) and len(np.unique(self.group)) == len(self.group)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Classes by depth, the deepest first."""
        depth, above = np.zeros(len(self.parent), dtype=np.int64), self.parent.copy()
        while (above >= 0).any():
            depth += above >= 0
            above = np.where(above >= 0, self.parent[above], -1)
        found = []
        for level in range(int(depth.max(initial=0)), -1, -1):
            members = np.flatnonzero(depth == level)
            members = members[np.argsort(self.group[members], kind="stable")]
            starts = np.flatnonzero(np.diff(self.group[members], prepend=-1))
            place = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(members))))
            found.append(Level(members, starts, place, self.parent[members[starts]]))
        return tuple(found)

    def posterior(self, gain: Floats, chance: Floats) -> tuple[Floats, Floats]:
        """Sum over all allowed sets.

        Parameters
        ----------
        gain : (n_tasks, n_classes)
            Log-likelihood ratio of having each class.
        chance : (n_classes,)
            Probability of each class, given that its parent is in the set.

        Returns
        -------
        (n_tasks,) log of the sum, and (n_tasks, n_classes) probabilities of the classes
        """
        score, total = gain + np.log(np.maximum(chance, TINY)), np.zeros(len(gain))
        norms = []
        for level in self.levels:
            own, nothing = score[:, level.members], np.log(self._nothing(level, chance))
            top = np.maximum(np.maximum.reduceat(own, level.starts, axis=1), nothing)
            mass = np.add.reduceat(np.exp(own - top[:, level.place]), level.starts, axis=1)
            norm = top + np.log(mass + np.exp(nothing - top))
            norms.append(norm)
            total += norm[:, level.parent < 0].sum(axis=1)
            for block in np.flatnonzero(level.parent >= 0):
                score[:, level.parent[block]] += norm[:, block]
        probas = np.empty_like(gain)
        for level, norm in zip(reversed(self.levels), reversed(norms), strict=True):
            share = np.exp(score[:, level.members] - norm[:, level.place])
            above = level.parent[level.place]
            probas[:, level.members] = share * np.where(above >= 0, probas[:, above], 1.0)
        return total, np.clip(probas, 0.0, 1.0)

    def conditional(self, counts: Floats, total: Any, pseudo: Floats, strength: float) -> Floats:
        """Return (..., n_classes) probabilities given the parents, from expected counts.

        Parameters
        ----------
        counts : (..., n_classes)
            Expected number of tasks with each class.
        total : (...)
            Number of tasks.
        pseudo : (n_classes,)
            Probabilities given the parents that count as ``strength`` tasks.
        """
        whole = np.where(self.parent >= 0, counts[..., self.parent], np.asarray(total)[..., None])
        return np.asarray((counts + strength * pseudo) / (whole + strength))

    def log_prior(self, chance: Floats, pseudo: Floats, strength: float) -> float:
        """Return the logarithm of the prior density of (n_classes,) probabilities."""
        found = float((pseudo * np.log(np.maximum(chance, TINY))).sum())
        for level in self.levels:
            none = self._nothing(level, pseudo) * np.log(self._nothing(level, chance))
            found += float(none.sum())
        return strength * found

    def integration_gain(
        self, counts: Floats, total: float, chance: Floats, pseudo: Floats, strength: float
    ) -> float:
        """Return what expected counts gain in log-probability if chances are integrated over.

        Parameters
        ----------
        counts, total
            Expected number of tasks with each class (n_classes,), and of all.
        chance : (n_classes,)
            Probabilities given the parents, whose log-likelihood and log prior are replaced.
        pseudo, strength
            The prior, as in :meth:`conditional`.
        """
        found = 0.0
        for level in self.levels:
            own, prior = counts[level.members], strength * pseudo[level.members]
            whole = np.where(level.parent >= 0, counts[level.parent], total)
            none = np.maximum(whole - level.sums(counts), 0.0)
            found += evidence_gain(own, prior, chance[level.members])
            found += evidence_gain(
                none, strength * self._nothing(level, pseudo), self._nothing(level, chance)
            )
            found -= rising(whole, np.full(len(whole), strength))
        return found

    @staticmethod
    def _nothing(level: Level, chance: Floats) -> Floats:
        """Return the probability that a block has none of its members."""
        return np.asarray(np.maximum(1 - level.sums(chance), TINY))

    def closed(self, shares: Floats) -> Floats:
        """Return (n_tasks, n_classes) shares in which no class exceeds its parent.

        Parents are raised, and shares in exclusive groups are scaled down to a sum of one.
        """
        found = shares.copy()
        for level in self.levels:
            for member in level.members[level.parent[level.place] >= 0]:
                above = self.parent[member]
                found[:, above] = np.maximum(found[:, above], found[:, member])
        return self.coherent(found)

    def coherent(self, probas: Floats) -> Floats:
        """Return probabilities in which no class exceeds its parent and groups sum to at most one.

        The most probable class of a group keeps its probability; the others share the rest.
        """
        if self.are_none:
            return probas
        found = probas.copy()
        for level in reversed(self.levels):
            for block, members in enumerate(np.split(level.members, level.starts[1:])):
                above, own = level.parent[block], found[:, members]
                if above >= 0:
                    own = np.minimum(own, found[:, above, None])
                best = own.max(axis=1, keepdims=True)
                is_best = np.arange(len(members)) == own.argmax(axis=1)[:, None]
                rest = np.maximum(np.where(is_best, 0.0, own).sum(axis=1, keepdims=True), TINY)
                found[:, members] = np.where(is_best, own, own * np.minimum(1, (1 - best) / rest))
        return found

    def allowed(self, chosen: Mask, probas: Floats) -> Mask:
        """Return (n_tasks, n_classes) sets without what the rules forbid.

        Of an exclusive group the most probable class stays, and a class without its parent goes.
        """
        if self.are_none:
            return chosen
        found = chosen.copy()
        for level in reversed(self.levels):
            for block, members in enumerate(np.split(level.members, level.starts[1:])):
                own = np.where(found[:, members], probas[:, members], -1.0)
                first = np.arange(len(members)) == own.argmax(axis=1)[:, None]
                found[:, members] &= first
                if level.parent[block] >= 0:
                    found[:, members] &= found[:, level.parent[block], None]
        return found

    def require_allowed(self, sets: Mask, tasks: NDArray[Any], classes: NDArray[Any]) -> None:
        """Refuse (n, n_classes) known sets of tasks that the rules forbid."""
        wrong = (self.allowed(sets, sets.astype(np.float64)) != sets).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            names = ", ".join(map(repr, classes[sets[row]].tolist()))
            raise DataError(
                f"The gold of task {tasks[row]!r} is {names}, which the rules (exclusive, implies) "
                "forbid; correct it, or the rules."
            )

    def require_support(self, data: CrowdSets) -> None:
        """Refuse rules that every set contradicts.

        Workers may leave out an implied class, because the rule adds it. A rule is refused if the
        class is in every set and the implied one in none, or if most sets have classes of an
        exclusive group and never a single one.
        """
        count = np.bincount(data.members, minlength=data.n_classes)
        filled = int(np.count_nonzero(data.sizes))
        child = np.flatnonzero(self.parent >= 0)
        never = child[(count[child] == filled) & (count[self.parent[child]] == 0)]
        if filled and len(never):
            name, above = data.classes[never[0]], data.classes[self.parent[never[0]]]
            raise DataError(
                f"Every set has the class {name!r}, none has {above!r}, and implies says that "
                f"{name!r} is only in sets with {above!r}; correct the rule, or the names."
            )
        group = self.group[data.members]
        for number in np.flatnonzero(np.bincount(self.group) > 1).tolist():
            per_set = np.bincount(data.annotation[group == number], minlength=data.n_annotations)
            about = int(np.count_nonzero(per_set))
            if about and 2 * about >= filled and not (per_set == 1).any():
                names = ", ".join(map(repr, data.classes[self.group == number].tolist()))
                raise DataError(
                    f"All {about} sets with a class of {names} have several of them, and exclusive "
                    "allows one at most; correct the rule, or the sets."
                )


def rising(counts: Floats, prior: Floats) -> float:
    """Return the sum of log Γ(counts + prior) − log Γ(prior)."""
    from scipy.special import gammaln

    return float((gammaln(counts + prior) - gammaln(prior)).sum())


def evidence_gain(counts: Floats, prior: Floats, chance: Floats) -> float:
    """Return :func:`rising`, less the log-density of counts and prior at the given chances."""
    logs = np.log(np.maximum(chance, TINY))
    return rising(counts, prior) - float(((counts + prior) * logs).sum())


def check_rules(exclusive: Any, implies: Any) -> None:
    """Refuse rules of another form than groups of names and a mapping of names."""
    groups = () if exclusive is None else exclusive
    listed = isinstance(groups, Sequence) and not isinstance(groups, str)
    if not listed or not all(_is_group(one) for one in groups):
        raise ParameterError(
            f"exclusive is {exclusive!r}; give a list of groups of two classes or more, such as "
            f"{parameter('exclusive', [['cat', 'dog']])}."
        )
    if implies is not None and not isinstance(implies, Mapping):
        raise ParameterError(
            f"implies is {implies!r}; give a mapping from class to class, such as "
            f"{parameter('implies', {'poodle': 'dog'})}."
        )


def _is_group(value: Any) -> bool:
    listed = isinstance(value, Sequence | set | frozenset) and not isinstance(value, str)
    return listed and len(value) > 1


def _code(name: Any, place: Mapping[str, int], what: str) -> int:
    if str(name) not in place:
        raise ParameterError(
            f"{what} names {name!r}{suggestion(str(name), list(place))}, which is not a class of "
            f"the data; correct it, or declare it in classes."
        )
    return place[str(name)]


def _refuse_circles(parent: Longs, classes: NDArray[Any]) -> None:
    above = parent.copy()
    for _ in range(len(parent)):
        above = np.where(above >= 0, parent[above], -1)
    if (above >= 0).any():
        name = classes[int(np.argmax(above >= 0))]
        raise ParameterError(f"implies leads from {name!r} to a circle of classes; break it.")
