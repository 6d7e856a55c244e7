"""Stages that workers run on stored memories; one file per stage."""
