"""The entry points of features: routes, commands, pages and tools, one folder per feature."""
