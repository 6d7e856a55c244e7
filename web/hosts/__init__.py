"""Setup of agents' hosts: one table of hosts, one engine a file format, one plan a run."""
