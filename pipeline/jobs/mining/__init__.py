"""What is found in memories: duplicates, edges, arcs, summaries, lessons, and likely questions."""
