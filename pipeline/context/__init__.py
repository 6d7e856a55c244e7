"""What an agent is told."""
