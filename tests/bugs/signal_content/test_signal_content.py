"""A damaged row was not rebuilt although its signal file was newer than its outputs.

Snakemake remembers a hash of every small input and ignores a newer time stamp on content that it has seen in a
finished job. A signal that is only touched is therefore no signal: a row that was damaged twice in the same way was
rebuilt the first time only. The signal of a row that is not current carries new content each time it is given.
"""

import os
import subprocess
import sys
import time

from rowproof.signals import signal

SNAKEFILE = """
rule row:
    input: "state.json"
    output: "out.txt"
    shell: "echo built > {output}"
"""


def snakemake(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ROWPROOF_", "SNAKEMAKE_"))}
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-triggers", "mtime", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return "Nothing to be done" not in done.stdout + done.stderr


def test_a_signal_is_seen_although_snakemake_remembers_its_content(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    given, output = tmp_path / "state.json", tmp_path / "out.txt"

    def give(state):
        signal(given, "key", state, [output], ["damaged"] if state != "current" else [], {})

    give("damaged")
    assert snakemake(tmp_path)
    # The trap: a newer time stamp alone.
    later = time.time() + 100
    os.utime(given, (later, later))
    assert not snakemake(tmp_path, "--dry-run")
    give("damaged")
    assert snakemake(tmp_path, "--dry-run")
