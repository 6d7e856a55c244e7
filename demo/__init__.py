"""The demonstration: a developer's week, and a program that shows what Reverie makes of it."""
