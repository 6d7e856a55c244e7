"""Git repositories, read without running anything that they configure."""
