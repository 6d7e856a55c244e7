"""How agents' hosts are told of Reverie: one table of hosts, one engine a file format, one plan a run."""
