"""Set up agent programs (hosts): a table of hosts, an editor per file format, and a plan per run."""
