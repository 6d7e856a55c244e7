"""What turns text into text: tokens, names, redaction. Nothing here knows a store; word lists are in `lexicon`."""
