"""What turns text into text: tokens, names, redaction. Nothing here reads a file nor knows a store."""
