"""Signatures with types, as a reader would write them."""

from __future__ import annotations

import inspect
from typing import Any

WIDTH = 96


def defaults(found: Any) -> dict[str, Any]:
    """Return the parameters of a class or function that have defaults."""
    known = parameters(found)
    return {p.name: p.default for p in known if p.default is not inspect.Parameter.empty}


def types(found: Any) -> dict[str, str]:
    """Return the declared types of parameters, without those that say nothing."""
    known = {p.name: annotation(p.annotation) for p in parameters(found)}
    return {name: text for name, text in known.items() if text not in ("", "Any")}


def parameters(found: Any) -> list[inspect.Parameter]:
    """Return the parameters of a class or function; some classes have no signature."""
    try:
        return list(inspect.signature(found).parameters.values())
    except ValueError:
        return []


def annotation(written: Any) -> str:
    """Return a type as text."""
    if written is inspect.Parameter.empty:
        return ""
    return written if isinstance(written, str) else inspect.formatannotation(written)


def signature(found: Any, *, skip_first: bool = False) -> str:
    """Return the call with types and defaults; long ones have one parameter per line.

    Examples
    --------
    >>> def f(x: int, *, y: "str | None" = None) -> bool: ...
    >>> signature(f)
    'f(x: int, *, y: str | None = None) -> bool'
    """
    shown = parameters(found)[1 if skip_first else 0 :]
    parts, starred = [], False
    for one in shown:
        if one.kind is one.VAR_POSITIONAL:
            starred = True
        elif one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(parameter(one))
    returned = "" if inspect.isclass(found) else annotation(result(found))
    tail = f") -> {returned}" if returned else ")"
    line = f"{found.__name__}({', '.join(parts)}{tail}"
    if len(line) <= WIDTH:
        return line
    body = "".join(f"    {part},\n" for part in parts)
    return f"{found.__name__}(\n{body}{tail}"


def parameter(one: inspect.Parameter) -> str:
    """Return one parameter: stars, name, type, default."""
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    written = annotation(one.annotation)
    text = f"{stars}{one.name}" + (f": {written}" if written else "")
    if one.default is one.empty:
        return text
    default = repr(one.default)
    if " at 0x" in default or default.startswith("<"):
        default = getattr(one.default, "__name__", "...")
    return f"{text} = {default}" if written else f"{text}={default}"


def result(found: Any) -> Any:
    """Return the declared type of the result."""
    try:
        return inspect.signature(found).return_annotation
    except ValueError:
        return inspect.Parameter.empty
