"""Compute the map of entities: graph, communities and positions."""
