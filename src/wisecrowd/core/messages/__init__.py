"""Parts of messages: options as the reader types them; ids, rows and columns."""
