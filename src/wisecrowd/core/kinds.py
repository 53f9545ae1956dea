"""Table of all kinds of labels.

A kind consists of a container, an answer class and an entry here. Reading, fits, tables, model
files, the command line and the common checks use that entry. The user or the method declares the
kind; it is never guessed from values.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from wisecrowd.core import symmetries
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.answers import Answers, ClassAnswers
from wisecrowd.core.cluster_answers import ClusterAnswers
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.item_answers import ItemAnswers
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.mask_answers import MaskAnswers
from wisecrowd.core.masks import CrowdMasks
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.number_answers import NumberAnswers
from wisecrowd.core.number_prior import number_prior
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.ordered_answers import OrderedAnswers
from wisecrowd.core.ordered_classes import ORDERED
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.rankings import CrowdRankings
from wisecrowd.core.region_answers import RegionAnswers
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.core.same import CrowdSame
from wisecrowd.core.sequence_answers import SequenceAnswers
from wisecrowd.core.sequence_truth import sequence_prior
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.set_answers import SetAnswers
from wisecrowd.core.set_truth import set_prior
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.settings import current_settings, with_settings
from wisecrowd.core.symmetries import Symmetry
from wisecrowd.core.task_prior import as_start, class_prior
from wisecrowd.core.text_answers import TextAnswers
from wisecrowd.core.texts import CrowdTexts

LABELS, NUMBERS, PAIRS, RANKINGS = "labels", "numbers", "pairs", "rankings"
SEQUENCES = "sequences"
SETS = "sets"
BOXES = "boxes"
SAME = "same"
TEXTS = "texts"
MASKS = "masks"
# Other words for the kinds, for suggestions.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    LABELS: ("classes", "class", "label", "categories", "category", "classification", "choices"),
    ORDERED: ("ordinal", "grades", "grade", "ratings", "rating", "likert", "scale"),
    NUMBERS: ("number", "numeric", "regression", "continuous", "values", "scores"),
    PAIRS: ("pair", "pairwise", "comparisons", "preferences", "preference", "votes"),
    RANKINGS: ("ranking", "ranks", "orders"),
    SEQUENCES: ("spans", "span", "tags", "ner", "bio", "sequence", "entities", "tokens"),
    SETS: ("set", "multilabel", "multi-label", "multi_label", "taxonomy"),
    BOXES: ("box", "bbox", "bboxes", "rectangles", "regions", "detection"),
    SAME: ("clusters", "clustering", "duplicates", "matching", "entity-resolution"),
    TEXTS: ("text", "transcripts", "transcriptions", "transcription", "translations", "strings"),
    MASKS: ("mask", "segmentation", "brush", "rle"),
}
IN_BLOCK = "`with with_kind(KIND):` of wisecrowd.core.kinds"  # in messages


def no_prior(task_prior: Any, gold: Any, data: Annotations) -> None:
    """Refuse a task prior or gold, for kinds without them."""
    if task_prior is not None or gold is not None:
        raise ParameterError(
            f"Methods for {type(data).__name__} take neither gold nor a task prior; leave them out."
        )


def no_start(init: Any, data: Annotations) -> None:
    """Refuse a start, for kinds whose methods choose their own."""
    if init is not None:
        raise ParameterError(f"Methods for {type(data).__name__} take no init; leave it out.")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of label.

    Attributes
    ----------
    name : str
        Its name for ``type`` and ``--type``.
    container : subclass of Annotations
        Declares the payload and the columns that hold it.
    answers : subclass of Answers
        Declares the results: attributes, tables, scores, saved axes.
    methods : str or mapping of class name to module
        Methods for this kind: a package with ``LOCATIONS``, or the module of each class.
    default_method : str
        Command-line name of the default method.
    prior : function of (task_prior, gold, data)
        Turns prior knowledge about tasks into the kind's own form.
    start : function of (init, data)
        Turns the user's start into the form that methods take.
    checked : bool
        Whether the common checks of a fit apply.
    declared : bool
        Whether a method of this kind declares what the labels are; otherwise classes that look
        like numbers or texts are refused.
    default_learner : str, optional
        Command-line name of the default method that learns from features.
    example : "module:function" or function of (make, seed)
        Returns a small crowd for the common checks of the methods that ``make`` creates.
    scorer : "module:class", optional
        How ``compare`` scores the methods of this kind; None if there is nothing to compare.
    symmetries : tuple of Symmetry
        Symmetries that the common checks verify for every method of this kind.
    audit : "module:name" of an AuditPlan, or ""
        Parts of an audit; without a plan there is no audit.
    report : "module:name" of a ReportPlan, or ""
        Content and sections of a report.
    """

    name: str
    container: type[Annotations]
    answers: type[Answers]
    methods: str | Mapping[str, str]
    default_method: str
    example: str | Callable[[Any, int], Annotations]
    prior: Callable[[Any, Any, Any], Any] = no_prior
    start: Callable[[Any, Any], Any] = no_start
    default_learner: str | None = None
    checked: bool = False
    declared: bool = False
    scorer: str | None = "wisecrowd.inference.scorers:ClassScorer"
    symmetries: tuple[Symmetry, ...] = ()
    audit: str = ""
    report: str = ""

    def gate(self, data: Any) -> Any:
        """Return data of any accepted form as this kind's container, or raise an error."""
        return self.container.coerce(data, type=self.name if self.declared else None)

    def method_modules(self) -> dict[str, str]:
        """Return the module of every method that takes this kind, by class name."""
        if not isinstance(self.methods, str):
            return dict(self.methods)
        locations = importlib.import_module(self.methods).LOCATIONS
        return {name: f"{self.methods}.{module}" for name, module in locations.items()}

    def example_crowd(self, make: Any, seed: int = 0) -> Any:
        """Return a small crowd for fitting a method."""
        if callable(self.example):
            return self.example(make, seed)
        module, _, function = self.example.partition(":")
        return getattr(importlib.import_module(module), function)(make, seed)


KINDS: dict[str, Kind] = {
    LABELS: Kind(
        name=LABELS,
        container=CrowdLabels,
        answers=ClassAnswers,
        methods="wisecrowd.aggregation",
        default_method="auto",
        default_learner="auto",
        prior=class_prior,
        start=as_start,
        checked=True,
        example="wisecrowd.testing.crowds:small_labels",
        audit="wisecrowd.audit.plans:CLASSES",
        report="wisecrowd.reporting.plans:CLASSES",
        symmetries=symmetries.CLASSES,
    ),
    ORDERED: Kind(
        name=ORDERED,
        container=CrowdLabels,
        answers=OrderedAnswers,
        methods="wisecrowd.aggregation.ordered",
        default_method="thresholds",
        scorer="wisecrowd.inference.scorers:OrderedScorer",
        prior=class_prior,
        start=as_start,
        checked=True,
        declared=True,
        example="wisecrowd.testing.crowds:small_grades",
        audit="wisecrowd.audit.plans:ORDERED",
        report="wisecrowd.reporting.plans:ORDERED",
        symmetries=symmetries.GRADES,
    ),
    NUMBERS: Kind(
        name=NUMBERS,
        container=CrowdNumbers,
        answers=NumberAnswers,
        methods="wisecrowd.aggregation.numbers",
        default_method="gaussian-em",
        scorer="wisecrowd.inference.scorers:NumberScorer",
        default_learner="raykar-regression",
        prior=number_prior,
        example="wisecrowd.testing.crowds:small_numbers",
        audit="wisecrowd.audit.plans:NUMBERS",
        report="wisecrowd.reporting.plans:NUMBERS",
        symmetries=symmetries.NUMBERS,
    ),
    PAIRS: Kind(
        name=PAIRS,
        container=CrowdPairs,
        answers=ItemAnswers,
        methods="wisecrowd.aggregation.pairs",
        default_method="crowd-bt",
        scorer="wisecrowd.inference.scorers:PairScorer",
        default_learner="preference-net",
        example="wisecrowd.testing.crowds:small_votes",
        audit="wisecrowd.audit.plans:PAIRS",
        report="wisecrowd.reporting.plans:PAIRS",
        symmetries=symmetries.PAIRS,
    ),
    RANKINGS: Kind(
        name=RANKINGS,
        container=CrowdRankings,
        answers=ItemAnswers,
        methods="wisecrowd.aggregation.rankings",
        default_method="plackett-luce",
        scorer=None,
        example="wisecrowd.testing.crowds:small_rankings",
        symmetries=symmetries.RANKINGS,
    ),
    SEQUENCES: Kind(
        name=SEQUENCES,
        container=CrowdSequences,
        answers=SequenceAnswers,
        methods="wisecrowd.aggregation.sequences",
        default_method="bsc",
        prior=sequence_prior,
        scorer="wisecrowd.inference.scorers:SequenceScorer",
        example="wisecrowd.testing.crowds:small_sequences",
        symmetries=symmetries.SEQUENCES,
        audit="wisecrowd.audit.plans:SEQUENCES",
        report="wisecrowd.reporting.plans:SEQUENCES",
    ),
    SETS: Kind(
        name=SETS,
        container=CrowdSets,
        answers=SetAnswers,
        methods="wisecrowd.aggregation.sets",
        default_method="shared-two-coin",
        default_learner="raykar-sets",
        prior=set_prior,
        scorer="wisecrowd.inference.scorers:SetScorer",
        example="wisecrowd.testing.crowds:small_sets",
        audit="wisecrowd.audit.plans:SETS",
        report="wisecrowd.reporting.plans:SETS",
        symmetries=symmetries.SETS,
    ),
    BOXES: Kind(
        name=BOXES,
        container=CrowdRegions,
        answers=RegionAnswers,
        methods="wisecrowd.aggregation.boxes",
        default_method="box-consensus",
        scorer="wisecrowd.inference.box_scorer:BoxScorer",
        example="wisecrowd.testing.crowds:small_boxes",
        symmetries=symmetries.BOXES,
        audit="wisecrowd.audit.plans:BOXES",
        report="wisecrowd.reporting.plans:BOXES",
    ),
    SAME: Kind(
        name=SAME,
        container=CrowdSame,
        answers=ClusterAnswers,
        methods="wisecrowd.aggregation.same",
        default_method="crowd-clustering",
        scorer="wisecrowd.inference.scorers:SameScorer",
        example="wisecrowd.testing.crowds:small_same",
        audit="wisecrowd.audit.plans:SAME",
        report="wisecrowd.reporting.plans:SAME",
        symmetries=symmetries.SAME,
    ),
    TEXTS: Kind(
        name=TEXTS,
        container=CrowdTexts,
        answers=TextAnswers,
        methods="wisecrowd.aggregation.texts",
        default_method="rover",
        scorer="wisecrowd.inference.scorers:TextScorer",
        example="wisecrowd.testing.crowds:small_texts",
        audit="wisecrowd.audit.plans:TEXTS",
        report="wisecrowd.reporting.plans:TEXTS",
        symmetries=symmetries.TEXTS,
    ),
    MASKS: Kind(
        name=MASKS,
        container=CrowdMasks,
        answers=MaskAnswers,
        methods="wisecrowd.aggregation.masks",
        default_method="mask-em",
        scorer="wisecrowd.inference.mask_scorer:MaskScorer",
        example="wisecrowd.testing.mask_crowds:small_masks",
        audit="wisecrowd.audit.plans:MASKS",
        report="wisecrowd.reporting.plans:MASKS",
        symmetries=symmetries.MASKS,
    ),
}


def all_kinds() -> dict[str, Kind]:
    """Return the built-in kinds and those added by :func:`with_kind`, by name."""
    return {**KINDS, **{kind.name: kind for kind in current_settings().kinds}}


@contextmanager
def with_kind(kind: Kind) -> Iterator[None]:
    """Register a kind that is defined outside of wisecrowd, inside a ``with`` block.

    Inside the block its name is a valid ``type`` and its methods are found by name.
    """
    if kind.name in all_kinds():
        raise ParameterError(f"There is a kind {kind.name!r} already; choose another name.")
    with with_settings(kinds=(*current_settings().kinds, kind)):
        yield


def kind_of(data: Annotations) -> Kind:
    """Return the kind of annotations: that of their container and of the order of classes.

    Examples
    --------
    >>> kind_of(CrowdNumbers.from_arrays(["t"], ["w"], [1.5])).name
    'numbers'
    """
    if isinstance(data, CrowdLabels):
        return KINDS[ORDERED if data.ordered else LABELS]
    for kind in all_kinds().values():
        if type(data) is kind.container:
            return kind
    raise ParameterError(
        f"{type(data).__name__} belong to a kind that is not known here; use it inside {IN_BLOCK}."
    )


def get_kind(name: str) -> Kind:
    """Return a kind by name.

    Examples
    --------
    >>> get_kind("labels").container.__name__
    'CrowdLabels'
    """
    if name in KINDS:
        return KINDS[name]
    found = all_kinds()
    if name not in found:
        raise ParameterError(
            f"type is {name!r}{_meant(name)}; only {', '.join(found)} are supported: give "
            f"{option('type', LABELS)}, another of these, or leave it out."
        )
    return found[name]


def _meant(name: str) -> str:
    """Return a question that names the kind with this other name, or an empty text."""
    plain = name.strip().lower()
    for kind, others in OTHER_NAMES.items():
        if plain == kind or plain in others:
            return f" (did you mean {option('type', kind)}?)"
    return suggestion(plain, list(all_kinds()))
