"""Maintenance jobs that run on a schedule, one module per job."""
