"""Maintenance: the registry of jobs, their schedule and runs."""
