"""Read the memories and rule files that other programs keep on this machine, one module per tool."""
