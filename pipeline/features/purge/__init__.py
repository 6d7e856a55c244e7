"""Purge: permanent deletion."""
