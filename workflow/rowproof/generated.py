"""Files of the repository that are generated from others; a test fails when they drift."""

from pathlib import Path

from rowproof.boards import MODELS, json_schema, schema_file
from rowproof.families import engines


def generated_files(root: Path) -> dict[str, bytes]:
    """Relative path -> content of every generated file."""
    files = {f"config/schemas/{kind}.schema.json": json_schema(kind) for kind in MODELS}
    for engine in engines().values():
        if engine.training_model is not None:
            files[f"config/schemas/training-{engine.name}.schema.json"] = schema_file(engine.training_model)
    readme = root / "README.md"
    from rowproof.evidence.readme import boards_block, update

    files["README.md"] = update(readme.read_text(encoding="utf-8"), {"boards": boards_block(root)}).encode()
    return files
