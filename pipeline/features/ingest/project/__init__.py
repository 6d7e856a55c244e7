"""Read a project's files: purpose, definitions and dependencies of each."""

from pipeline.features.ingest.project.read import read_project

__all__ = ["read_project"]
