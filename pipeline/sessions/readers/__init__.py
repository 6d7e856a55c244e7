"""Read the sessions that coding agents keep on this machine. One module per agent."""
