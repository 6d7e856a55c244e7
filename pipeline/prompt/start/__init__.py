"""The brief at the start of a session."""
