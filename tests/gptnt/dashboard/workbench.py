"""Databases of games for the dashboard, and what stands in a page."""

import base64
import json
import zlib
from html.parser import HTMLParser

from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import crash, played
from rowproof.gptnt.bomb.mission import NEEDY, SOLVABLE, Mission
from rowproof.gptnt.database import build_db
from rowproof.gptnt.players.turns import Answer, AnswerError, Usage, send_message
from rowproof.gptnt.recordings import write_game

# What a model may write: markup, quotes, templates, marks that reorder text, and what no reader shows.
HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'> \"quoted\" &amp; ${x} $data "
    "\u202ereversed\u202c nul\0 \u2028 ]]> <!-- \U0001f4a3"
)
LONG = "a" * 1_000_000
ALL = Mission(8, 900, SOLVABLE, 8)
ALL_NEEDY = Mission(7, 300, (*NEEDY, "Wires", "Keypad"), 6)


def talker(text):
    """A Defuser that says, thinks and writes ``text`` in its first turn, and then answers nothing that can be read."""

    def choose(turn):
        if turn.number > 1:
            raise AnswerError("action_parsing_failed", raw_output="no action", usage=Usage(5, 7, 1))
        return Answer(
            send_message(text), thoughts=text, raw_output=text, usage=Usage(1000, 20, 1, cache_read_tokens=900)
        )

    return Puppet(choose)


def games():
    """Games of several outcomes, styles and pairings."""
    return [
        *(played(attempt=attempt) for attempt in (1, 2)),
        played(style="async"),
        played(alone=True),
        played(defuser=Puppet(), expert=Puppet(), attempt=5),
        played(defuser=Puppet(crash), expert=Puppet(), attempt=3),
        played(ALL),
        played(ALL_NEEDY),
        played(defuser=talker(HOSTILE), attempt=4),
    ]


def database(folder, some):
    """A database of games, built from their record files."""
    for game in some:
        write_game(game, folder / "records")
    (folder / "records").mkdir(exist_ok=True)
    build_db(folder / "records", folder / "games.duckdb")
    return folder / "games.duckdb"


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of those with an id."""

    def __init__(self, data):
        super().__init__()
        self.elements = []
        self.texts = {}
        self._id = None
        self.feed(data.decode())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._id = attributes.get("id")

    def handle_endtag(self, tag):
        self._id = None

    def handle_data(self, data):
        if self._id is not None:
            self.texts[self._id] = self.texts.get(self._id, "") + data

    @property
    def data(self):
        """What the scripts are given."""
        return json.loads(self.texts["page-data"])

    def dialogue(self, number):
        """The steps of a game."""
        return json.loads(zlib.decompress(base64.b64decode(self.texts[f"game-{number}"])))
