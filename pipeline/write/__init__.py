"""Admission: what happens to a memory before it is acknowledged."""
