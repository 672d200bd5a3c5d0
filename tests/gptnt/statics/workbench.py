"""Small data sets, players that can be told what to do, and runs of static tasks."""

from datetime import UTC, datetime
from functools import partial

from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.room import Provenance
from rowproof.gptnt.statics import run as statics_run
from rowproof.gptnt.statics.datasets import load_dataset
from rowproof.gptnt.statics.players import Reply
from rowproof.gptnt.statics.run import Options, run_static
from rowproof.records import decode

SMALL = partial(load_dataset, rows_per_module=1)
QUICK = "defuser-vqa-mcq"
NORMALISED = Capabilities(
    player_name="normalised",
    player_type="ai",
    interaction_location_method="coordinates",
    coordinate_mode="normalised",
)


class Puppet:
    """Answers as a function of the instance says, and keeps what it was asked."""

    model = "puppet-1"

    def __init__(self, reply="A", name="puppet", capabilities=None, **setup):
        self.name = name
        self.capabilities = capabilities or Capabilities(player_name=name, player_type="ai")
        self.setup = setup
        self.reply = reply
        self.asked = []

    def answer(self, task, instruction, instance):
        self.asked.append((instance.index, instruction, instance.parts))
        reply = self.reply(instance) if callable(self.reply) else self.reply
        return reply if isinstance(reply, Reply) else Reply(reply)


def small_data(monkeypatch):
    """Make all runs use one row per module."""
    monkeypatch.setattr(statics_run, "load_dataset", SMALL)


def run(task, player, output, **options):
    """Run a task; return the exit code and the lines that were said."""
    said = []
    options.setdefault("throw", True)
    code = run_static(
        task,
        player,
        output,
        Provenance("1.0"),
        Options(**options),
        say=said.append,
        now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    return code, said


def folders(output, task):
    """The folders of all players and setups of a task."""
    return sorted(path for path in (output / task).glob("*/*") if path.is_dir())


def read(folder, name):
    """A file of a run."""
    return decode((folder / name).read_bytes(), name)
