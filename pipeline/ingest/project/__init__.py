"""A project's files: what each is for, what it defines, what it leans on."""

from pipeline.ingest.project.read import read_project

__all__ = ["read_project"]
