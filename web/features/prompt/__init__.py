"""The entry points of prompts and hook runs."""
