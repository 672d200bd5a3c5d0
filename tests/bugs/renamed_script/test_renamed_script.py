"""A stage's script was renamed, and bundles made before could not be verified any more.

Expected: a bundle is held against the names that its own commit had for scripts, whatever they are called today.
"""

from bundles import commit_all, make_project, make_row
from rowproof.evidence.verify import verify_bundle
from rowproof.stages import SCRIPTS


def test_a_bundle_outlives_the_name_of_its_script(tmp_path, monkeypatch):
    root = make_project(tmp_path / "p")
    scripts, table = root / "workflow/scripts", root / "workflow/rowproof/stages.py"
    (scripts / "assemble.py").rename(scripts / "older.py")
    today = table.read_text()
    table.write_text(today.replace("workflow/scripts/assemble.py", "workflow/scripts/older.py"))
    assert table.read_text() != today
    commit_all(root)
    with monkeypatch.context() as then:
        then.setitem(SCRIPTS, "bundle", "workflow/scripts/older.py")
        bundle = make_row(root, root / "results", "handover-v1", "b-stat")
    (scripts / "older.py").rename(scripts / "assemble.py")
    table.write_text(today)
    commit_all(root)
    checks = {check.id: check for check in verify_bundle(bundle, root).checks}
    assert checks["history:code"].verdict == "pass", checks["history:code"]
    assert checks["history:pins"].verdict == "pass", checks["history:pins"]
