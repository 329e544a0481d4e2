"""Runs a program of rivals/ with stand-ins of the packages that it needs, on a processor in place of a GPU."""

import os
import runpy
import sys

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
rivals = os.path.join(here, "..", "..", "..", "rivals")
sys.path.append(rivals)  # the stand-ins come first

import torch_pass

torch_pass.devices = lambda cpu: ["cpu"]
runpy.run_path(os.path.join(rivals, sys.argv[1]), run_name="__main__")
