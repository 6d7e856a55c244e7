"""What a prompt is shown: sources of lines, the choice between them, and the block."""
