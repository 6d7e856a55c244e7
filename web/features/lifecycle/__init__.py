"""Start, stop and status of the stack."""
