"""Read a project's files: purpose, definitions and dependencies of each."""

from pipeline.extras import require_extra

require_extra("code")

from pipeline.ingest.project.read import read_project  # noqa: E402 - the line above explains how to install the grammars

__all__ = ["read_project"]
