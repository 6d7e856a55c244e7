"""The form in which a memory is shown in one line: hooks and tools write it, and an echo of it is recognised."""

# What stands above the lines that a hook shows.
HEADER = "From this project's memory (recorded earlier; check before relying on it):"
# The end of a ULID is random; its beginning is the time, which neighbours share.
SHORT_ID = 8
CUT = "…"
# A quotation mark of its own would end the quotation early.
INNER_QUOTES = str.maketrans({"“": "'", "”": "'"})
