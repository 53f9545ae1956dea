"""Files in and out: tables (csv, tsv, jsonl, parquet), one module per format."""
