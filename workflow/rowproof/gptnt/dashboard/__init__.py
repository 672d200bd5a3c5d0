"""A dashboard of all games of a database: one HTML file that works from the disk, without a network."""

from pathlib import Path

from rowproof.files import write_atomic
from rowproof.gptnt.dashboard.data import DIALOGUES_BYTES, read_page
from rowproof.gptnt.dashboard.page import render_page
from rowproof.gptnt.dashboard.tables import Missions

__all__ = ["write_dashboard"]


def write_dashboard(
    database: Path, target: Path, missions: Missions | None = None, dialogues_bytes: int = DIALOGUES_BYTES
) -> None:
    """Write the dashboard of a database; the same database always gives the same page.

    The overview has every game. Dialogues are there as far as they fit; the page says how many do not.

    Args:
        database: of :func:`rowproof.gptnt.database.build_db`, opened read-only and closed before anything is written.
        target: the HTML file.
        missions: keys of the missions of frozen suites, by name and revision; coverage is not told of other suites.
        dialogues_bytes: what all dialogues together may take in the page.

    Raises:
        ConfigError: there is no such database.
        RecordError: a step of it is damaged.
    """
    page, dialogues = read_page(database, missions or {}, dialogues_bytes)
    write_atomic(target, render_page(page, dialogues))
