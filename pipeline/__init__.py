"""The processing of memories, from the write to recall and maintenance."""
