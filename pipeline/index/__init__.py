"""Derived indexes for recall; each can be deleted and rebuilt from the store."""
