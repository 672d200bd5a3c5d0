"""Files of the repository that are generated from others; a test fails when they drift."""

from pathlib import Path

from rowproof.boards import MODELS, json_schema


def generated_files(root: Path) -> dict[str, bytes]:
    """Relative path -> content of every generated file."""
    files = {f"config/schemas/{kind}.schema.json": json_schema(kind) for kind in MODELS}
    readme = root / "README.md"
    from rowproof.evidence.readme import boards_block, update

    files["README.md"] = update(readme.read_text(encoding="utf-8"), {"boards": boards_block(root)}).encode()
    return files
