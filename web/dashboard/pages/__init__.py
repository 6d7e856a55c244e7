"""The sections of the dashboard, by subject."""
