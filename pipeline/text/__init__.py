"""Text analysis without a store: tokens, names, redaction. Word lists are in `lexicon`."""
