"""The demonstration: a sample history, six questions and a program that asks them of a real stack."""
