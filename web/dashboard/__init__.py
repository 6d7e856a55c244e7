"""The dashboard: pages for the person whose memory it is, rendered here, opened by a one-time link."""
