"""Options for reading a file of annotations, and for running a command."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from wisecrowd.cli.options import shared
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.read_options import ReadOptions, names_of

LISTS = {"columns", "worker_columns", "kinds", "accept", "classes"}  # options with several names
AFTERWARDS = ("seen", "drop_after", "pseudonymize")  # options for labels that have been read


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options for the layout of a file of annotations."""

    panel: ClassVar[str] = "Reading"

    task: shared.TaskColumn = None
    worker: shared.WorkerColumn = None
    label: shared.LabelColumn = None
    left: shared.LeftColumn = None
    right: shared.RightColumn = None
    no_header: shared.NoHeader = False
    columns: shared.Columns = None
    wide: shared.Wide = False
    worker_columns: shared.WorkerColumns = None
    format: shared.Format = "auto"
    encoding: shared.Encoding = "utf-8"
    kinds: shared.Kinds = None
    exclude_workers: shared.ExcludeWorkers = None
    accept: shared.Accept = None

    def arguments(self) -> dict[str, Any]:
        """Return the options as ``wisecrowd.read`` takes them.

        Examples
        --------
        >>> SourceOptions(no_header=True, columns="task,label").arguments()["columns"]
        ['task', 'label']
        """
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in LISTS & set(found):
            found[name] = names_of(found[name])
        for name in ("abstain", "exclude_workers", "accept"):
            if name in found:
                found[name] = found[name] or ()
        return found | {"header": not found.pop("no_header")}


@dataclass(frozen=True, kw_only=True)
class Reading(SourceOptions):
    """Options for reading a file of annotations."""

    timestamp: shared.TimestampColumn = None
    weight: shared.WeightColumn = None
    classes: shared.Classes = None
    abstain: shared.Abstain = None
    duplicates: shared.Duplicates = "auto"
    type: shared.Type = None
    scale: shared.Scale = None
    seen: shared.Seen = None
    drop_after: shared.DropAfter = None
    pseudonymize: shared.Pseudonymize = None

    def arguments(self) -> dict[str, Any]:
        """Return the options as ``wisecrowd.read`` takes them."""
        found = super().arguments()
        return {name: value for name, value in found.items() if name not in AFTERWARDS}

    @property
    def declared_type(self) -> str | None:
        """The type of the labels that the options declare."""
        return ReadOptions.of(**self.arguments()).type

    @property
    def declared_classes(self) -> list[str] | None:
        """The classes that the options declare, in order."""
        classes: list[str] | None = ReadOptions.of(**self.arguments()).classes
        return classes

    @property
    def moments(self) -> dict[str, str]:
        """The times of ``--drop-after`` by worker; the last one of a worker counts.

        Examples
        --------
        >>> Reading(drop_after=["a=b=2026-05-31"]).moments
        {'a=b': '2026-05-31'}
        """
        found = {}
        for text in self.drop_after or []:
            worker, sign, moment = text.rpartition("=")
            if not sign or not worker or not moment:
                raise ParameterError(
                    f"--drop-after is {text!r}; give a worker and a time, such as "
                    "w7=2026-05-31T14:00:00."
                )
            found[worker] = moment
        return found

    def options(self) -> list[str]:
        """Return the options that make another command read the files the same way.

        The key of the pseudonyms is not repeated.

        Examples
        --------
        >>> Reading(wide=True, kinds="all", abstain=["?", "-"]).options()
        ['--wide', '--kinds', 'all', '--abstain', '?', '--abstain', '-']
        """
        found: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default or field.name == "pseudonymize":
                continue
            option = f"--{field.name.replace('_', '-')}"
            if value is True:
                found.append(option)
            else:
                for one in value if isinstance(value, list) else [value]:
                    found += [option, one]
        return found

    @property
    def key_files(self) -> list[str]:
        """Further files to read, which outputs must not overwrite and manifests do not describe."""
        return [path for path in (self.pseudonymize, self.seen) if path is not None]


@dataclass(frozen=True, kw_only=True)
class Running:
    """Options for running a command."""

    panel: ClassVar[str] = "Running"

    seed: shared.Seed = None
    threads: shared.Threads = None
    quiet: shared.Quiet = False
