"""Free texts, such as transcripts."""
