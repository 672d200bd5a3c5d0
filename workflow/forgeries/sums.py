"""Plain hash checking, to compare with: ``python -m forgeries.sums FOLDER`` reads digest lists and manifests only."""

import json
import sys
from pathlib import Path

from forgeries.seal import sha256


def _problems(folder: Path) -> list[str]:
    stated: dict[str, str] = {}
    sums = folder / "SHA256SUMS.txt"
    if sums.is_file():
        stated |= {name: digest for digest, name in (line.split("  ", 1) for line in sums.read_text().splitlines())}
    for name, key in (("bundle.json", "manifest"), ("leaderboard.json", "files")):
        if (folder / name).is_file():
            stated |= json.loads((folder / name).read_bytes())[key]
    if not stated:
        return ["nothing to check"]
    return [name for name, digest in stated.items() if sha256((folder / name).read_bytes()) != digest]


def main() -> int:
    """0 if every listed digest holds, else 1."""
    folder = Path(sys.argv[1])
    try:
        problems = [
            f"{each.name}/{name}"
            for each in (folder, *sorted(path for path in folder.iterdir() if path.is_dir()))
            if each == folder or (each / "bundle.json").exists()
            for name in _problems(each)
        ]
    except (OSError, ValueError, KeyError) as error:
        problems = [str(error)]
    print("\n".join(problems) or "all digests hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
