"""The use cases: one module a family. A door parses, calls one of them, and renders what it returns.

A use case takes what it needs as arguments, reads and decides, and commits once; the commit wakes the workers.
"""
