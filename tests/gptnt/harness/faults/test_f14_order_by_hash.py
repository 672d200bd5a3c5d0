"""Specs were kept in a hash set, so that the order of play differed from process to process."""

import os
import subprocess
import sys

from helpers import ROOT

CODE = "from gptnt.harness.workbench import examine; print(*examine('headline').specs, sep='\\n')"


def test_the_order_of_specs_is_the_same_in_every_process():
    orders = set()
    for seed in ("1", "2", "3"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["workflow", "tests"])}
        done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, env=environment, capture_output=True, check=True)
        orders.add(done.stdout)
    assert len(orders) == 1 and len(orders.pop().splitlines()) == 100
