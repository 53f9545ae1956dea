"""Parts of messages: options in the reader's syntax, ids, rows and columns."""
