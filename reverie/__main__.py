"""Run the command line: python -m reverie."""

from reverie import use_own_packages

use_own_packages()

from web.cli import main  # noqa: E402 - found only now

main()
