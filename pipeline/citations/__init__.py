"""Resolve what texts cite of a repository against its checkout and its history."""
