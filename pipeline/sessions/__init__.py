"""The session archive: search it, extract what sessions concluded, and answer questions from it."""
