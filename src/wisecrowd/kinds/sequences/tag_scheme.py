"""TagScheme: which tags there are, which may follow each other, and the spans that they mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Longs, Mask

SCHEMES = ("bio", "plain")
OUTSIDE, BEGIN, INSIDE = "O", "B-", "I-"


class Spans(NamedTuple):
    """Spans of several sequences, sorted by sequence and start.

    Attributes
    ----------
    sequence, start, end : (n_spans,) int64
        Number of the sequence, first token, and the token after the last.
    kind : (n_spans,) int64
        Code of the type.
    """

    sequence: Longs
    start: Longs
    end: Longs
    kind: Longs


@dataclass(frozen=True)
class TagScheme:
    """The tags of token sequences.

    Attributes
    ----------
    name : {"bio", "plain"}
        In "bio", ``O`` is outside of all spans, ``B-x`` begins a span of type ``x`` and ``I-x``
        continues it. In "plain", each token has a class, and equal neighbours form a span.
    tags : tuple of str

    Examples
    --------
    >>> scheme = TagScheme.of(["I-PER", "O"])
    >>> scheme.name, scheme.tags
    ('bio', ('O', 'B-PER', 'I-PER'))
    >>> scheme.legal[-1].tolist()  # at the start
    [True, True, False]
    """

    name: str
    tags: tuple[str, ...]

    @classmethod
    def of(cls, tags: Sequence[Any], name: str | None = None) -> TagScheme:
        """Return the scheme of some tags, completed: every type has both of its tags.

        Parameters
        ----------
        tags : sequence of str
        name : {"bio", "plain"}, optional
            By default "bio" if all tags have that form.
        """
        texts = [str(tag) for tag in tags]
        strange = [tag for tag in texts if not _is_bio(tag)]
        spans = any(tag != OUTSIDE for tag in texts)
        if name is None:
            name = "plain" if strange or not spans else "bio"
        if name not in SCHEMES:
            raise ParameterError(f"scheme is {name!r}; choose one of {', '.join(SCHEMES)}.")
        if name == "plain":
            return cls(name, tuple(dict.fromkeys(texts)))
        if strange:
            raise DataError(
                f"The tag {strange[0]!r} is not one of the scheme O, B-type, I-type; correct it, "
                f"or give {option('scheme', 'plain')}."
            )
        types = sorted({tag[2:] for tag in texts if tag != OUTSIDE})
        return cls(name, (OUTSIDE, *(f"{p}{x}" for x in types for p in (BEGIN, INSIDE))))

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Types of spans: those of BIO tags, or all plain classes."""
        return tuple(tag[2:] for tag in self.tags[1::2]) if self._bio else self.tags

    @property
    def _bio(self) -> bool:
        return self.name == "bio"

    @cached_property
    def type_of(self) -> Longs:
        """(K,) code of the type of each tag; -1 for outside."""
        codes = np.arange(len(self.tags), dtype=np.int64)
        if self._bio:
            return np.asarray((codes + 1) // 2 - 1)
        return np.where(np.array(self.tags, dtype=object) == OUTSIDE, -1, codes)

    @cached_property
    def begins(self) -> Mask:
        """(K,) whether a tag begins a span whatever comes before."""
        return np.array([self._bio and tag.startswith(BEGIN) for tag in self.tags], dtype=bool)

    @cached_property
    def legal(self) -> Mask:
        """(K + 1, K) whether a tag may follow another; the last row is the start."""
        n = len(self.tags)
        allowed = np.ones((n + 1, n), dtype=bool)
        if self._bio:
            inside = np.array([tag.startswith(INSIDE) for tag in self.tags], dtype=bool)
            same = np.append(self.type_of, -2)[:, None] == self.type_of[None, :]
            allowed = ~inside[None, :] | same
        return allowed

    def spans(self, tags: NDArray[np.integer[Any]], pointer: Longs) -> Spans:
        """Return the spans of tag sequences, one after the other.

        A tag that continues nothing begins a span, so illegal sequences have spans too.

        Parameters
        ----------
        tags : (n_tokens,) codes
        pointer : (n_sequences + 1,)
        """
        n = len(tags)
        kind = self.type_of[tags]
        first = np.zeros(n + 1, dtype=bool)
        first[pointer[:-1][np.diff(pointer) > 0]] = True
        before = np.append(-1, kind[:-1])
        starts = (kind >= 0) & (first[:n] | self.begins[tags] | (before != kind))
        # A span ends where the next token starts a span, is of another type, or starts a sequence.
        following = np.append(kind[1:], -1)
        breaks = np.append(starts[1:], True) | np.append(first[1:n], True) | (following != kind)
        start, end = np.flatnonzero(starts), np.flatnonzero((kind >= 0) & breaks) + 1
        sequence = np.searchsorted(pointer, start, side="right") - 1
        return Spans(sequence, start - pointer[sequence], end - pointer[sequence], kind[start])

    def tags_of(self, kind: Longs, length: Longs) -> NDArray[np.int32]:
        """Return the tags of spans of BIO, one after the other."""
        codes = np.repeat(2 + 2 * kind, length)
        codes[np.cumsum(length) - length] -= 1
        return codes.astype(np.int32)


def _is_bio(tag: str) -> bool:
    return tag == OUTSIDE or (tag.startswith((BEGIN, INSIDE)) and len(tag) > 2)
