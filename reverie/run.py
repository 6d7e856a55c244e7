"""Run a module in a process of Reverie: python -m reverie.run MODULE ARGUMENTS."""

import runpy
import sys

from reverie import use_own_packages

if __name__ == "__main__":
    use_own_packages()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
