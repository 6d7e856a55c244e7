"""The demonstration: a sample history, eight questions and a program that asks them of a real stack."""
