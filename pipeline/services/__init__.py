"""The use cases: one module per family. An entry point parses, calls one of them, and renders what it returns.

A use case takes what it needs as arguments, reads and decides, and commits once; the commit wakes the workers. Records
are imported from where they are defined, and shared parts belong to a package below.
"""
