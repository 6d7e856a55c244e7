"""Jobs that derive records from memories: duplicates, edges, arcs, summaries, lessons, and likely questions."""
