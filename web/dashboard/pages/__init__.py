"""The sections of the dashboard, one file each."""
