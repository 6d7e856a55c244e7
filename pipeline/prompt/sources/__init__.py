"""The sources of the lines that a prompt may be shown."""
