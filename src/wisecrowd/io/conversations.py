"""Conversations as items: data sets of preferences keep a response as a list of messages."""

from __future__ import annotations

from typing import Any


def last_message(value: Any) -> Any:
    """Return the text of the last message of a conversation; other values are returned unchanged.

    Examples
    --------
    >>> last_message([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    'Hello'
    >>> last_message("Hello"), last_message([1, 2])
    ('Hello', [1, 2])
    """
    if not isinstance(value, list) or not value or not isinstance(value[-1], dict):
        return value
    content = value[-1].get("content")
    return content if isinstance(content, str) else value


def last_messages(column: Any) -> Any:
    """Return a column of conversations as Arrow text; other columns are returned unchanged."""
    import pyarrow as pa

    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return column
    texts = [last_message(value) for value in column.to_pylist()]
    if not all(text is None or isinstance(text, str) for text in texts):
        return column  # lists of another form are refused, with the row
    return pa.array(texts, pa.large_string())
