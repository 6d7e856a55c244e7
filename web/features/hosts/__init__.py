"""The setup of agent programs."""
