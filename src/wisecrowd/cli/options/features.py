"""Options that name files of features and graphs of tasks, and say how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import Group, option, present_paths
from wisecrowd.core.exceptions import ParameterError


@dataclass(frozen=True, kw_only=True)
class FeatureReading:
    """Options for files of features."""

    panel: ClassVar[str] = "Features"

    embed: Annotated[
        str | None,
        option(
            "--embed MODULE:FUNCTION",
            "Python function from a list of texts to an array of features.",
        ),
    ] = None
    feature_columns: Annotated[
        str | None,
        option(
            "--feature-columns A,B,C",
            "Columns of the features, or the column of text (default: detected).",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class GraphReading(Group):
    """Options for a graph of tasks."""

    panel: ClassVar[str] = "Neighbouring tasks"

    graph: Annotated[
        str | None,
        option(
            "--graph FILE",
            "Table of neighbouring tasks, which tend to share their class: task, neighbour and, "
            "optionally, weight.",
        ),
    ] = None
    graph_features: Annotated[
        str | None,
        option(
            "--graph-features FILE",
            "Features of the tasks; the 10 nearest by cosine are neighbours.",
        ),
    ] = None

    def check(self, kind: str | None = None) -> None:
        """Refuse two graphs."""
        if len(self.sources()) > 1:
            raise ParameterError("--graph and --graph-features both give neighbours; give one.")

    def sources(self) -> list[str]:
        """Return the files that are read."""
        return present_paths(self.graph, self.graph_features)


@dataclass(frozen=True, kw_only=True)
class FeatureFiles:
    """The options that name files of features."""

    panel: ClassVar[str] = "Features"

    features: Annotated[
        str | None, option("--features FILE", "Features; compare the methods that use them.")
    ] = None
    ids: shared.Ids = None
    test: Annotated[
        str | None, option("--test FILE", "Features of test tasks; needs --test-truth.")
    ] = None
    test_truth: Annotated[
        str | None, option("--test-truth FILE", "True classes of the test tasks.")
    ] = None

    def check(self, parameters: list[str], columns: FeatureReading) -> None:
        """Refuse options that need features."""
        given = (self.ids, self.test, self.test_truth, columns.embed, columns.feature_columns)
        if self.features is None and (any(given) or parameters):
            raise ParameterError(
                "--ids, --test, --test-truth, --embed, --feature-columns and -p go with "
                "--features; give it too."
            )

    def paths(self) -> list[str]:
        """Return the options that are given."""
        return [p for p in (self.features, self.ids, self.test, self.test_truth) if p is not None]
