"""Run the command line as a module."""

from web.cli import main

main()
