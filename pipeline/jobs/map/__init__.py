"""The map of entities: its graph, communities and places."""
