"""The dashboard: server-rendered pages for the owner of the memories, opened with a one-time link."""
