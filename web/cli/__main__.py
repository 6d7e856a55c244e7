"""Run the command line; scripts of earlier editable installations start this module."""

from web.cli import main

main()
