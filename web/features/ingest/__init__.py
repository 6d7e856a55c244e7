"""The entry points of the feature `ingest`."""
