"""Memory on several machines: operations are signed, sealed, carried by remotes, and merged."""
