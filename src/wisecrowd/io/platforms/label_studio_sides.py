"""The items that a comparison in Label Studio is about: fields of the task's data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wisecrowd.core.columns import guess, listed
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.answer_forms import Vote
from wisecrowd.io.platforms.label_studio_controls import WHOLE


class Sides:
    """The two items of a comparison: values of fields of the task's data.

    An export names neither, so the user does, or the fields have usual names such as left and
    right. The JSON export has the names of the two compared objects, which may be those of fields.
    """

    def __init__(self, request: Request, source: str) -> None:
        self._asked = [request.asked.get(side) for side in ("left", "right")]
        self._request = request
        self._source = source
        self._known: dict[tuple[str, ...], tuple[str, str] | str] = {}

    def fields(self, names: tuple[str, ...], objects: str = "") -> tuple[str, str] | str:
        """Return the fields of the left and the right item, or the error if they are not known.

        Parameters
        ----------
        names : tuple of str
            All fields of the data.
        objects : str
            The names of the compared objects, separated by a comma.
        """
        key = (objects, *names)
        if key not in self._known:
            found = self._known[key] = self._find(names, objects)
            if not isinstance(found, str):
                self._request.found |= {"left": found[0], "right": found[1]}
        return self._known[key]

    def _find(self, names: tuple[str, ...], objects: str) -> tuple[str, str] | str:
        usual = CrowdPairs.roles()
        found: list[str | None] = []
        for side, asked in zip(("left", "right"), self._asked, strict=True):
            if asked is not None and asked.removeprefix("data.") not in names:
                return (
                    f"{self._source} has no field {asked!r} in the data of its tasks for "
                    f"{for_reader(side, f'--{side}')}; there are {listed(names)}."
                )
            found.append(asked.removeprefix("data.") if asked else _usual(side, names, usual[side]))
        if None in found:
            found = [name if name in names else None for name in objects.split(",")]
        if len(found) == 2 and found[0] is not None and found[1] is not None:
            return found[0], found[1]
        return (
            f"{self._source} does not say which items are compared; name the fields of the tasks' "
            f"data that hold them with {for_reader('left=... and right=...', '--left and --right')}"
            f" (there are {listed(names)}), or give {option('type', 'labels')} for the sides alone."
        )

    def vote(self, value: Mapping[str, Any], data: Mapping[str, Any], objects: str) -> Vote:
        """Return the comparison that a value and the data of its task stand for."""
        outcome = value.get(WHOLE["pairwise"])
        fields = self.fields(tuple(data), objects)
        if isinstance(fields, str):
            return Vote(None, None, outcome, fields)
        return Vote(data.get(fields[0]), data.get(fields[1]), outcome)


def _usual(side: str, names: tuple[str, ...], usual: tuple[str, ...]) -> str | None:
    try:
        return guess(side, names, usual)
    except DataError:  # several: none of them is certain
        return None
