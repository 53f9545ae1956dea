"""Classes that look like abstentions by their names, such as "unsure" or "n/a".

Workers who choose them do not say what the class is. Declared as abstentions, they count as no
label; as a class they can win.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader

_APOSTROPHES = re.compile(r"['’`´]")
_BETWEEN = re.compile(r"[\W_]+")
_NAMES = re.compile(
    r"unsure|not sure|(?:im )?uncertain|undecided|idk|(?:i )?(?:dont|do not|not) know"
    r"|unknown|not known|n a|na|not applicable|none of (?:the|these|those|them)\b.*"
    r"|(?:i )?(?:cannot|can not|cant|could not|couldnt|unable to) (?:tell|say|decide|judge|see)"
    r"|skip|skipped|abstain|abstained|abstention|no answer|no opinion|no idea"
    r"|prefer not to (?:say|answer)|not enough (?:information|info|context)"
)


def is_abstention(name: Any) -> bool:
    """Return whether a class is called as an abstention would be.

    "Other" and "none" are answers more often than not; whether workers support them is another
    question.

    Examples
    --------
    >>> [is_abstention(name) for name in ("Unsure", "I don't know", "n/a", "none of the above")]
    [True, True, True, True]
    >>> [is_abstention(name) for name in ("other", "none", "Nathan", "unknown soldier", 3)]
    [False, False, False, False, False]
    """
    if not isinstance(name, str):
        return False
    words = _BETWEEN.sub(" ", _APOSTROPHES.sub("", name.lower())).strip()
    return _NAMES.fullmatch(words) is not None


def abstention_hint(names: Any) -> str:
    """Return the option that declares classes as abstentions, in the reader's syntax.

    Examples
    --------
    >>> abstention_hint(["not sure"])
    "abstain=['not sure']"
    """
    given = [str(name) for name in names]
    return for_reader(f"abstain={given}", " ".join(f"--abstain {shlex.quote(n)}" for n in given))


def abstention_sentence(names: Any) -> str:
    """Return what the names of classes look like."""
    one = len(names) == 1
    return (
        f"The class{'' if one else 'es'} {describe_ids(names)} {'looks' if one else 'look'} like "
        f"{'an abstention' if one else 'abstentions'}: workers who choose "
        f"{'it' if one else 'them'} may not know"
    )
