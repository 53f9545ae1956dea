"""Options on attributes of tasks and workers, and on decisions with bounded gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from wisecrowd.cli.options.group import Group, option, present_paths
from wisecrowd.core.exceptions import ParameterError


@dataclass(frozen=True, kw_only=True)
class GroupOptions(Group):
    """Options that name the groups of tasks to compare."""

    panel: ClassVar[str] = "Groups"

    attributes: Annotated[
        str | None,
        option("--attributes FILE", "Attributes of tasks: task, and one column for each."),
    ] = None
    worker_attributes: Annotated[
        str | None, option("--worker-attributes FILE", "Attributes of workers: worker, ...")
    ] = None
    attribute: Annotated[
        list[str] | None,
        option("--attribute NAME", "Attribute whose groups are compared; repeatable."),
    ] = None
    positive: Annotated[
        str | None,
        option("--positive CLASS", "Class that is given or refused (default: the last)."),
    ] = None
    of_workers: ClassVar[bool] = False  # whether something reads attributes of workers

    def check(self, kind: str | None = None) -> None:
        """Refuse names without a file, and attributes of workers where nothing reads them."""
        if self.worker_attributes is not None and not self.of_workers:
            raise ParameterError("--worker-attributes is for wisecrowd report; leave it out.")
        if self.attribute and self.attributes is None:
            raise ParameterError("--attribute names a column of --attributes; give that file.")
        if self.positive is not None and self.attributes is None:
            raise ParameterError("--positive is for groups of tasks; give --attributes.")

    def sources(self) -> list[str]:
        """Return the files to read."""
        return present_paths(self.attributes, self.worker_attributes)

    def part_options(self) -> dict[str, dict[str, Any]]:
        """Return the options of the part of an audit that compares groups."""
        if self.attributes is None:
            return {}
        found = {"attributes": self.attribute, "positive": self.positive}
        return {"group-gaps": {name: value for name, value in found.items() if value}}


class ReportGroups(GroupOptions):
    """Options of a report, which reads attributes of workers too."""

    of_workers = True


@dataclass(frozen=True, kw_only=True)
class FairOptions(GroupOptions):
    """Options that bound the gap between groups of tasks."""

    fair: Annotated[
        str | None,
        option(
            "--fair demographic-parity=EPSILON",
            "Decide so that the groups of --attribute differ by at most EPSILON in the rate of "
            "each class.",
        ),
    ] = None

    def check(self, kind: str | None = None) -> None:
        """Refuse a bound without groups, one that is not a number, and a class without a bound."""
        super().check(kind)
        if self.positive is not None and self.fair is None:
            raise ParameterError("--positive belongs to --fair; give that too, or leave it out.")
        if self.fair is not None:
            self.bound()

    def bound(self) -> float:
        """Return the largest gap, or refuse a constraint that is not one."""
        name, _, value = str(self.fair).partition("=")
        if self.attributes is None or len(self.attribute or []) != 1:
            raise ParameterError("--fair needs --attributes FILE and one --attribute NAME.")
        try:
            largest = float(value)
        except ValueError:
            largest = -1.0
        if name != "demographic-parity" or not 0 <= largest <= 1:
            raise ParameterError(
                f"--fair is {self.fair!r}; give the constraint demographic-parity and, after an "
                "equals sign, a number from 0 to 1."
            )
        return largest
