"""What an agent gets before and after a tool call."""
