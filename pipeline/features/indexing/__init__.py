"""Indexing: the stages and jobs that keep the derived indexes complete."""
