"""Capture: propose memories from lasting statements in users' messages."""
