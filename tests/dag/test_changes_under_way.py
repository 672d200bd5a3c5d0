"""A job refuses to work with code or products other than those that its build was launched with."""

import os
import py_compile

import pytest

ROW = "push-v1/ref-script"
PUSH_PY = "workflow/rowproof/chamber/push.py"


@pytest.mark.slow
def test_changed_code_is_named(empty_small):
    # After its own work, the first job of the row edits a module that the second one uses.
    with (empty_small.root / "workflow/scripts/specs.py").open("a") as stream:
        stream.write(f"\nwith Path({PUSH_PY!r}).open('a') as stream:\n    stream.write('LATE = 1\\n')\n")
    empty_small.edit("workflow/scripts/specs.py", "from importlib", "from pathlib import Path\nfrom importlib")
    empty_small.commit()
    run = empty_small.build(f"results/{ROW}")
    assert run.code != 0
    message = f"the code must stay as it was when the build started, found a change in {PUSH_PY}: start snakemake again"
    assert message in empty_small.log("simulate")
    assert "Traceback" not in empty_small.log("simulate") + run.output
    assert not list((empty_small.root / "work/rows" / ROW).glob("simulate-*/*.jsonl"))
    # Once the change is committed, the next build takes it up.
    empty_small.git("checkout", "-q", "HEAD~1", "--", "workflow/scripts/specs.py")
    empty_small.commit()
    empty_small.build(f"results/{ROW}").ok()


@pytest.mark.slow
def test_edited_product_is_named(empty_small):
    empty_small.snakemake(f"results/{ROW}", "--cores", "1", "--until", "simulate").ok()
    (product,) = (empty_small.root / "work/rows" / ROW).glob("simulate-*/seed1.jsonl")
    product.write_bytes(product.read_bytes().replace(b"true", b"null", 1).replace(b"false", b"true", 1) + b"\n")
    run = empty_small.build(f"results/{ROW}")
    assert run.code != 0
    name = product.relative_to(empty_small.root).as_posix()
    assert f"{name} must be as its job wrote it, found other content: delete it" in empty_small.log("summarise")
    assert "Traceback" not in empty_small.log("summarise") + run.output
    # What the message asks for is enough.
    product.unlink()
    empty_small.build(f"results/{ROW}").ok()


def test_jobs_run_their_sources_whatever_byte_code_says(small, empty_small):
    """Size and time stamp of the byte code's source are those of the source: Python alone would run the old code."""
    for name in ("chamber/push.py", "records.py", "recipes.py", "evidence/bundle.py", "evidence/verify.py"):
        path = empty_small.root / "workflow/rowproof" / name
        source, stamp = path.read_bytes(), path.stat().st_mtime_ns
        path.write_bytes(b"raise SystemExit('old code ran')".ljust(len(source)))
        os.utime(path, ns=(stamp, stamp))
        py_compile.compile(str(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
        path.write_bytes(source)
        os.utime(path, ns=(stamp, stamp))
    empty_small.build("results/push-v1/ref-script").ok()
    assert empty_small.files("push-v1/ref-script") == small.files("push-v1/ref-script")
