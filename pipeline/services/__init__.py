"""The use cases: one module a family. A door parses, calls one of them, and renders what it returns.

A use case takes what it needs as arguments, reads and decides, and commits once; the commit wakes the workers. A
module's `__all__` names what it passes on from below, for the doors that may not import it there.
"""
