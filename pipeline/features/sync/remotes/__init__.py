"""Remotes: a folder, S3-compatible storage, or another Reverie server."""
