"""What was written elsewhere, read into memories: projects, their history, documents, exported conversations."""
