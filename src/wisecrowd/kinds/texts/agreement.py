"""Agreement of texts: how many words of two texts of the same task are equal."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    labels_that_count,
    ratio_of_pairs,
)
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.methods.variants import Variants
from wisecrowd.kinds.texts.words import TextRules


def agreement_evidence(data: CrowdTexts) -> AgreementEvidence:
    """Return the texts that count, with their coefficients; case and punctuation do not matter.

    ``word_agreement`` is the mean over pairs of texts of one minus the edits per word of the longer
    text, and ``equal_texts`` the share of pairs with the same words.

    Examples
    --------
    >>> texts = ["a small dog", "A small dog.", "one small dog"]
    >>> data = CrowdTexts.from_arrays(["r"] * 3, ["ann", "bob", "cem"], texts)
    >>> round(agreement_evidence(data).coefficients["word_agreement"].value, 2)
    0.78
    """
    data = labels_that_count(data)
    variants = Variants(data, TextRules())
    own = np.ones(data.n_annotations)
    others = (data.labels_per_task[data.task] - 1).astype(np.float64)
    far = variants.remoteness(own)[variants.variant]
    equal = variants.sums(own)[variants.variant] - 1
    return AgreementEvidence(
        task=data.task, worker=data.worker,
        coefficients={
            "word_agreement": ratio_of_pairs(others - far, others),
            "equal_texts": ratio_of_pairs(equal, others),
        },
    )  # fmt: skip
