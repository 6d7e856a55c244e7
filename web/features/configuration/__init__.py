"""Settings in the command line and the dashboard."""
