"""Read external sources into memories: projects, their history, documents, exported conversations."""
