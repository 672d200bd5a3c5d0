"""A training is killed, or its disk is full, at its worst moments; what comes out at last has the same bits."""

import shutil
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from bundles import make_project
from faults.conftest import Ended, Named, Workdir, enter, in_child, killed_before, small_disk
from rowproof.hashing import sha256_hex

pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")

NAME, SEED = "handover-v1/b-aht", 1


class Trainer(Workdir):
    """A working directory for one training, which runs in children: this process must start no thread of torch."""

    @property
    def document(self) -> Path:
        return Path(self.row.product("train", f"seed{SEED}.json"))

    def train(self) -> Ended:
        row = self.row
        call = SimpleNamespace(
            input=Named(recipe=row.recipe_path("train")),
            output=Named(document=str(self.document)),
            params=SimpleNamespace(plan_path=row.plan_path, plan_blob=row.plan_blob, seed=SEED),
            log=["logs/train.log"],
            threads=1,
        )
        return self.execute("train", call)

    def finish(self) -> str:
        """Start again and train to the end; returns what the log says."""
        self.launch()
        assert in_child(lambda: self.train().code) == 0
        return Path("logs/train.log").read_text()

    def made(self) -> dict[str, str]:
        """Path -> SHA-256 of the document and of its checkpoints."""
        folder = self.document.parent
        files = [self.document, *sorted(folder.rglob("*.safetensors"))]
        return {path.relative_to(folder).as_posix(): sha256_hex(path.read_bytes()) for path in files}


@pytest.fixture(scope="module")
def learned_project(tmp_path_factory):
    """Two checkpoints, few frames."""
    return make_project(tmp_path_factory.mktemp("learned") / "project", learned=True)


@pytest.fixture
def trainer(patched, learned_project, tmp_path) -> Trainer:
    enter(patched, learned_project, tmp_path / "w")
    trainer = Trainer(learned_project, tmp_path / "w", NAME)
    trainer.launch()
    return trainer


@pytest.fixture(scope="module")
def expected(learned_project, tmp_path_factory) -> dict[str, str]:
    """What a training that nothing disturbs makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROWPROOF_LAUNCH", "")
        folder = tmp_path_factory.mktemp("undisturbed") / "w"
        enter(patch, learned_project, folder)
        trainer = Trainer(learned_project, folder, NAME)
        trainer.finish()
        return trainer.made()


def renamed_to(suffix: str):
    return lambda event, arguments: event == "os.rename" and str(arguments[1]).endswith(suffix)


WORST = {
    "between the first checkpoint and its state": (0, "resume.state", "no state"),
    "between the second checkpoint and its state": (1, "resume.state", "160 of 320"),
    "before the second checkpoint": (1, ".safetensors", "160 of 320"),
    "between the last state and the note": (0, ".job.json", "320 of 320"),
    "between the note and the document": (0, f"seed{SEED}.json", "320 of 320"),
}


@pytest.mark.parametrize(("number", "suffix", "left"), WORST.values(), ids=WORST)
def test_a_training_is_killed(trainer, expected, number, suffix, left):
    assert killed_before(number, lambda: trainer.train().code, renamed_to(suffix))
    assert not trainer.document.exists()
    said = trainer.finish()
    assert ("frames were done before" in said) == (left != "no state")
    assert left == "no state" or f"{left} frames were done before" in said
    assert trainer.made() == expected
    assert not list(trainer.document.parent.rglob("resume.state"))


@pytest.mark.slow
def test_a_training_is_killed_before_each_step(trainer, expected):
    for number in count():
        if not killed_before(number, lambda: trainer.train().code):
            break
        if not trainer.document.exists():
            trainer.finish()
        assert trainer.made() == expected
        shutil.rmtree("work")
        trainer.launch()
    assert number > 20


@pytest.mark.parametrize("damage", ["truncated", "changed", "without its checkpoint"])
def test_a_damaged_state_is_not_used(trainer, expected, damage):
    assert killed_before(1, lambda: trainer.train().code, renamed_to("resume.state"))
    (state,) = trainer.document.parent.rglob("resume.state")
    data = bytearray(state.read_bytes())
    if damage == "truncated":
        state.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        data[-1] ^= 1
        state.write_bytes(data)
    else:
        for checkpoint in trainer.document.parent.rglob("*.safetensors"):
            checkpoint.unlink()
    assert "were done before" not in trainer.finish()
    assert trainer.made() == expected


@pytest.mark.parametrize("content", [b"", b'{"checkpoints":'], ids=["empty", "truncated"])
def test_a_damaged_document_is_left_to_its_reader(trainer, content):
    trainer.document.parent.mkdir(parents=True)
    trainer.document.write_bytes(content)
    trainer.launch()
    assert trainer.document.read_bytes() == content


def test_a_full_disk_is_named_and_the_training_goes_on_later(patched, learned_project, expected, tmp_path):
    with small_disk(tmp_path / "disk", "1m"):
        enter(patched, learned_project, tmp_path / "disk/w")
        trainer = Trainer(learned_project, tmp_path / "disk/w", NAME)
        trainer.launch()
        assert killed_before(1, lambda: trainer.train().code, renamed_to("resume.state"))
        (state,) = trainer.document.parent.rglob("resume.state")
        whole = state.read_bytes()
        ballast = tmp_path / "disk/ballast"
        with ballast.open("wb", buffering=0) as stream, pytest.raises(OSError):
            while True:
                stream.write(bytes(4096))
        assert in_child(lambda: _says(trainer, f"error: No space left on device: {state.parent}/")) == 0
        assert state.read_bytes() == whole
        ballast.unlink()
        trainer.finish()
        assert trainer.made() == expected
        patched.chdir(tmp_path)


def _says(trainer: Trainer, message: str) -> int:
    """0 when the training fails with one line that begins so."""
    ended = trainer.train()
    errors = [line for line in ended.message.splitlines() if line.startswith("error: ")]
    return 0 if ended.code == 2 and len(errors) == 1 and errors[0].startswith(message) else 1
