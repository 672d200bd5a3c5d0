"""How far success with each partner scatters between trainings: further trainings of a learned row, outside its board.

Run: .venv/bin/python benchmarks/training_spread.py ROW FOLDER SEED [SEED ...]
Then: .venv/bin/python benchmarks/training_spread.py ROW FOLDER

Every seed is trained, its checkpoint selected and evaluated exactly as the row's own seeds are, and beyond that the
partner ``EVERY_CHECKPOINT`` is played by each checkpoint, to tell what the selection could have chosen. That is a
diagnosis: nothing of it selects, tunes or enters the board. One JSON document per seed is left in FOLDER; a killed
training goes on from its last checkpoint.
"""

import json
import sys
from itertools import combinations
from pathlib import Path
from statistics import mean

from rowproof.boards import load_board
from rowproof.chamber.cocarry import engine, training, validation
from rowproof.chamber.grid import specs
from rowproof.checkpoints import file_name, read_bytes
from rowproof.evidence.facts import load_facts
from rowproof.evidence.selection import selection
from rowproof.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
EVERY_CHECKPOINT = "imp_lag_bounded"


class Line:
    """Follows a training with one line for every tenth of it."""

    def __init__(self, seed: int, frames: int) -> None:
        self._seed, self._frames, self._done = seed, frames, 0

    def resume(self, done: int) -> None:
        self._done = done

    def advance(self, units: int, work: int, note: str) -> None:
        before, self._done = self._done, self._done + units
        if before * 10 // self._frames != self._done * 10 // self._frames:
            print(f"seed {self._seed}: {self._done} frames, {note}", flush=True)


def episodes_of(setup: dict, seed: int, members: list[str], uri: str, data: bytes) -> list[dict]:
    """The records of one seed with some partners, played by one checkpoint."""
    chosen = [member for member in setup["members"] if member["name"] in members]
    planned = specs({**setup, "seeds": [seed], "members": chosen})
    return [_brief(record) for record in engine.simulate(setup, planned, {seed: (uri, data)})]


def _brief(record: dict) -> dict:
    metadata = record["metadata"]
    return {
        "member": metadata["member"],
        "success": record["success"],
        "force_peak_n": record["force_peak"],
        "max_tilt_deg": metadata["max_tilt_deg"],
        "centroid_to_goal_m": metadata["centroid_to_goal"],
        "n_steps": metadata["n_steps"],
    }


def report(path: str, folder: Path) -> None:
    """Print the trainings in FOLDER beside the published ones."""
    documents = [json.loads(file.read_bytes()) for file in sorted(folder.glob("seed*.json"))]
    rates = []
    for document in documents:
        by_member: dict[str, list[bool]] = {}
        for episode in document["episodes"]:
            by_member.setdefault(episode["member"], []).append(episode["success"])
        rates.append({member: mean(own) for member, own in by_member.items()})
        cells = "  ".join(f"{member} {rate:.2f}" for member, rate in rates[-1].items())
        print(f"seed {document['seed']}: step {document['selected']}, mean {mean(rates[-1].values()):.3f}  {cells}")
    own = [rate[EVERY_CHECKPOINT] for rate in rates]
    board, row = path.split("/")
    facts = load_facts(board, ROOT)[row]["success"].values()
    published = [text[EVERY_CHECKPOINT].count("1") / len(text[EVERY_CHECKPOINT]) for text in facts]
    print(f"{EVERY_CHECKPOINT}: here {own}, published {published}")
    gap, pooled, count = mean(published) - mean(own), own + published, len(published)
    splits = list(combinations(range(len(pooled)), count))
    total = sum(pooled)
    reached = sum(
        sum(pooled[i] for i in chosen) / count - (total - sum(pooled[i] for i in chosen)) / len(own) >= gap - 1e-12
        for chosen in splits
    )
    print(f"published minus here {gap:.3f}; as large or larger in {reached} of {len(splits)} exchanges")
    means = [mean(rate.values()) for rate in rates]
    fives = [mean(five) for five in combinations(means, 5)]
    inside = sum(0.90 <= value <= 0.99 for value in fives)
    print(
        f"rows of five of these trainings: {inside} of {len(fives)} inside 0.90 to 0.99, "
        f"{min(fives):.3f} to {max(fives):.3f}"
    )
    perfect = [
        sum(episode["success"] for episode in played) / len(played)
        for document in documents
        for step, played in document["every_checkpoint"].items()
        if document["scores"][step] == max(document["scores"].values()) == 12
    ]
    print(f"checkpoints with 12 of 12 in validation: {len(perfect)}, with {EVERY_CHECKPOINT} {sorted(perfect)}")


def main() -> None:
    if len(sys.argv) == 3:
        report(sys.argv[1], Path(sys.argv[2]))
        return
    path, folder, seeds = sys.argv[1], Path(sys.argv[2]), [int(seed) for seed in sys.argv[3:]]
    board, row = path.split("/")
    plan = load_board(ROOT, board)
    trained, judged_by, played = plan.training_setup(row), plan.selection_setup(row), plan.row_setup(row)
    for seed in seeds:
        checkpoints = folder / f"seed{seed}"
        checkpoints.mkdir(parents=True, exist_ok=True)
        document = training.train(trained, seed, checkpoints, Line(seed, trained["training"]["frames"]))
        files = {
            saved["step"]: (saved["uri"], read_bytes(checkpoints / file_name(saved["uri"]), saved["uri"]))
            for saved in document["checkpoints"]
        }
        judged = [
            {**saved, "episodes": validation.validate(judged_by, *files[saved["step"]])}
            for saved in document["checkpoints"]
        ]
        selected = selection(seed, judged, judged_by["limits"])
        members = [member["name"] for member in played["members"]]
        result = {
            "row": path,
            "seed": seed,
            "scores": {c["step"]: c["score"] for c in selected["candidates"]},
            "selected": selected["selected"]["step"],
            "episodes": episodes_of(played, seed, members, *files[selected["selected"]["step"]]),
            "every_checkpoint": {
                step: episodes_of(played, seed, [EVERY_CHECKPOINT], *file) for step, file in files.items()
            },
        }
        write_atomic(folder / f"seed{seed}.json", json.dumps(result, indent=1).encode())
        print(f"seed {seed}: selected step {result['selected']}", flush=True)


if __name__ == "__main__":
    main()
