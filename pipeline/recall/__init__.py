"""Recall: from a query to ranked, checked and explained hits."""
