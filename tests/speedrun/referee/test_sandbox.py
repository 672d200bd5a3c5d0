import os
import sys
import time
from pathlib import Path

import pytest
import yaml
from rowproof.speedrun.referee import sandbox as module
from rowproof.speedrun.referee.sandbox import Limits, Program, Sandbox, SandboxError, last_core, self_test

LIMITS = Limits(wall_s=60.0, cpu_s=20, mem_mb=512, scratch_mb=4)


def ended(sandbox, code, limits=LIMITS, seconds=60.0, **options):
    with Program(sandbox, ["-c", code], limits, **options) as program:
        return program.finish(time.monotonic() + seconds)


@pytest.fixture
def basic(monkeypatch):
    # As root the program runs as nobody, who may not read an interpreter in a private folder.
    if os.geteuid() == 0:
        if not Path("/usr/bin/python3").exists():
            pytest.skip("this machine has no interpreter that everybody may run")
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    return Sandbox("basic", last_core())


def test_the_strict_sandbox_holds(sandbox, tmp_path):
    secret = tmp_path / "gen_val_000000.bin"
    secret.write_bytes(b"secret")
    self_test(sandbox, [secret])


@pytest.mark.slow
def test_the_basic_sandbox_holds_what_it_promises(basic, tmp_path):
    secret = tmp_path / "gen_val_000000.bin"
    secret.write_bytes(b"secret")
    self_test(basic, [secret])


@pytest.mark.parametrize("name", module._PROBES)
def test_the_self_test_notices_a_sandbox_that_does_not_hold(sandbox, monkeypatch, name):
    monkeypatch.setattr(module, "_PROBES", {name: "pass"})
    with pytest.raises(SandboxError, match=name):
        self_test(sandbox, [])


def test_the_self_test_notices_a_sandbox_in_which_nothing_runs(sandbox, monkeypatch):
    monkeypatch.setitem(module._ENVIRONMENT, "PYTHONHOME", "/nowhere")
    with pytest.raises(SandboxError, match="harmless"):
        self_test(sandbox, [])


def test_a_strict_program_sees_no_more_than_it_needs(sandbox):
    code = "import os; print(os.getuid(), os.getpid(), sorted(os.listdir('/proc')), sorted(os.environ), os.getcwd())"
    end = ended(sandbox, code)
    environment = sorted({*module._ENVIRONMENT, "HOME", "TMPDIR"})
    assert end.stdout.decode() == f"65534 2 ['cpuinfo'] {environment} /tmp\n"


def test_a_strict_program_cannot_import_what_makes_the_validation_text(sandbox, monkeypatch):
    found = ended(sandbox, "import rowproof.speedrun.corpus")
    assert found.exit_code == 1
    # Installed among the interpreter's packages, as an editable one never is.
    folder = str(Path(yaml.__file__).parent)
    assert ended(sandbox, "import yaml; yaml.safe_load").exit_code == 0
    monkeypatch.setattr(module, "_hidden_folders", lambda: [folder])
    assert ended(sandbox, "import yaml; yaml.safe_load").exit_code == 1


def test_a_program_has_the_descriptors_that_it_was_given_and_no_others(sandbox):
    reading, writing = os.pipe()
    code = (
        "import os, stat\n"
        "for number in range(64):\n"
        "    try: print(number, stat.S_IFMT(os.fstat(number).st_mode))\n"
        "    except OSError: pass"
    )
    end = ended(sandbox, code, descriptors=[writing])
    assert {int(line.split()[0]) for line in end.stdout.splitlines()} == {0, 1, 2, writing}
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("mode", ["strict", "basic"])
def test_a_result_comes_back(mode, request):
    chosen = request.getfixturevalue("sandbox" if mode == "strict" else "basic")
    end = ended(chosen, "open('final', 'w').write('here')", result="final", result_limit_mb=1.0)
    assert (end.exit_code, end.result, end.result_error) == (0, b"here", "")
    assert end.cpu_s > 0


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "import os; os.symlink('/proc/cpuinfo', 'final')",
        "import os; os.mkfifo('final')",
        "import os; os.mkdir('final')",
        "open('final', 'wb').write(bytes(3 << 20))",
    ],
    ids=["nothing", "link", "pipe", "folder", "too large"],
)
def test_what_is_no_plain_file_is_no_result(sandbox, code):
    end = ended(sandbox, code, result="final", result_limit_mb=2.0)
    assert end.exit_code == 0
    assert end.result is None
    assert end.result_error


@pytest.mark.parametrize("mode", ["strict", "basic"])
def test_whoever_outlives_the_program_is_noticed_and_ended(mode, request):
    chosen = request.getfixturevalue("sandbox" if mode == "strict" else "basic")
    code = (
        "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid(); os.fork(); time.sleep(300)\n"
    )
    started_s = time.monotonic()
    end = ended(chosen, code)
    assert end.alive
    assert end.exit_code == 0
    assert time.monotonic() - started_s < 60


def test_descendants_that_are_gone_count_with_their_time(sandbox):
    code = (
        "import os, time\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        while time.process_time() < 0.5: pass\n"
        "    os._exit(0)\n"
        "os.close(writing); os.read(reading, 1); time.sleep(0.5)"
    )
    end = ended(sandbox, code)
    assert not end.alive
    assert end.cpu_s > 0.5


@pytest.mark.parametrize("mode", ["strict", "basic"])
def test_a_program_is_ended_at_its_deadline(mode, request):
    chosen = request.getfixturevalue("sandbox" if mode == "strict" else "basic")
    end = ended(chosen, "import os, time; os.fork(); time.sleep(300)", seconds=1.0)
    assert end.stopped
    assert end.exit_code == -9


def test_nothing_stays_when_the_harness_gives_up(sandbox):
    with pytest.raises(RuntimeError), Program(sandbox, ["-c", "import time; time.sleep(300)"], LIMITS) as program:
        process = program._process
        raise RuntimeError
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("while True: pass", -24),
        ("import socket; socket.socket()", -31),
        ("import os; os.sched_setaffinity(0, {0})", 1),
        ("bytearray(1 << 30)", 1),
        ("import mmap; mmap.mmap(-1, 6 << 30)", 1),
        ("open('large', 'wb').write(bytes(8 << 20))", 1),
        ("files = [open('x', 'w') for _ in range(100)]", 1),
        ("import threading, time\n[threading.Thread(target=time.sleep, args=(1,)).start() for _ in range(64)]", 1),
    ],
    ids=["time", "socket", "affinity", "memory", "shared memory", "file size", "open files", "threads"],
)
def test_limits_hold(sandbox, code, exit_code):
    limits = Limits(wall_s=60.0, cpu_s=2, mem_mb=512, scratch_mb=4)
    assert ended(sandbox, code, limits).exit_code == exit_code


def test_output_is_capped_and_its_end_is_kept(sandbox):
    end = ended(sandbox, "import sys\nfor i in range(400_000): print(i, 'x' * 20)\nprint('last')")
    assert len(end.stdout) == 1 << 20
    assert end.stdout.endswith(b"last\n")


def test_a_machine_without_namespaces_falls_back(monkeypatch):
    def refuse(self):
        raise SandboxError("no namespaces")

    monkeypatch.setattr(Program, "_map_users", refuse)
    assert module.available_mode("strict", last_core()) == "basic"
    assert module.available_mode("basic", last_core()) == "basic"
