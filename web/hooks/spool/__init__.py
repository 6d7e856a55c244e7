"""The offline spool: requests that wait in files until the web server of the data directory is back."""
