"""What a plan takes from other files, pinned by digest in a lock beside it: ``config/plans/<plan>.lock.json``.

A plan names partner sets, trainings and players; their content decides records as much as the plan does. The lock
holds a digest of each, is committed before any run, and only grows: under the same name another content is refused.
"""

import re
from collections.abc import Mapping
from typing import Any

from rowproof.boards import BoardSetup
from rowproof.errors import ConfigError, RecordError
from rowproof.files import write_atomic
from rowproof.records import check_fields, decode, digest, encode_document

SCHEMA = "rowproof/plan-lock/1"
FIELDS = {"schema": (str,), "plan": (str,), "digests": (dict,)}
_SHA256 = re.compile("[0-9a-f]{64}")


def lock_path(plan_path: str) -> str:
    """Path of the lock of the plan ``config/plans/<plan>.yaml``."""
    return plan_path.removesuffix(".yaml") + ".lock.json"


def read_lock(data: bytes, where: str, plan: str) -> dict[str, str]:
    """Thing -> SHA-256, of the lock of the plan of this name.

    Raises:
        RecordError: it is no lock, or that of another plan.
    """
    document = check_fields(decode(data, where), FIELDS, where)
    if document["schema"] != SCHEMA:
        raise RecordError(f"{where}: schema must be {SCHEMA}, found {document['schema']!r}")
    if document["plan"] != plan:
        raise RecordError(f"{where}: must be the lock of plan {plan}, found that of {document['plan']!r}")
    for name, value in document["digests"].items():
        if not (isinstance(value, str) and _SHA256.fullmatch(value)):
            raise RecordError(f"{where}: {name} must have a SHA-256, found {value!r}")
    return document["digests"]


def pinned(
    setup: Mapping[str, Any], training: Mapping[str, Any] | None, selection: Mapping[str, Any] | None
) -> dict[str, str]:
    """What a row takes from files beside the plan: thing -> SHA-256 of its content.

    Args:
        setup: of the row.
        training: its training configuration, of learned rows.
        selection: the setup of its selection, of learned rows.
    """
    members = [*setup["members"], *([selection["member"]] if selection else [])]
    found = {f"partner {setup['partner_set']}/{member['name']}": digest(member) for member in members}
    if training is not None:
        found[f"training {training['training']}"] = digest(dict(training))
    for name, value in setup.get("settings", {}).items():
        if isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
            found |= {f"{name} {key}": digest(item) for key, item in value.items()}
        else:
            found[name] = digest(value)
    return dict(sorted(found.items()))


def pinned_by_row(setup: BoardSetup, row: str) -> dict[str, str]:
    """:func:`pinned` of a row of a board as the checkout has it."""
    learned = row in setup.trainings
    training = setup.training_setup(row)["training"] if learned else None
    return pinned(setup.row_setup(row), training, setup.selection_setup(row) if learned else None)


def wanted(setup: BoardSetup) -> dict[str, str]:
    """What all rows of a board take from files beside the plan."""
    found: dict[str, str] = {}
    for row in setup.board.rows:
        found |= pinned_by_row(setup, row)
    return dict(sorted(found.items()))


def _locked(setup: BoardSetup) -> dict[str, str]:
    name = lock_path(setup.plan_path)
    path = setup.root / name
    try:
        return read_lock(path.read_bytes(), name, setup.plan.plan) if path.is_file() else {}
    except RecordError as error:
        raise ConfigError(str(error)) from None


def check_lock(setup: BoardSetup) -> None:
    """Refuse what is not pinned, or pinned as something else.

    Raises:
        ConfigError: naming what differs, and what to do.
    """
    path, locked, found = lock_path(setup.plan_path), _locked(setup), wanted(setup)
    changed = [name for name in found if name in locked and locked[name] != found[name]]
    if changed:
        raise ConfigError(
            f"{path}: {', '.join(changed)} must be as it was when the plan was locked, found other content: restore "
            "it, or give the new content a name or version of its own"
        )
    missing = [name for name in found if name not in locked]
    if missing:
        raise ConfigError(
            f"{path}: must pin {', '.join(missing)}, found no digest: run `rowproof lock {setup.board.board}` and "
            "commit the file with the plan"
        )


def write_lock(setup: BoardSetup) -> bool:
    """Add what is not pinned yet; returns whether the file changed.

    Raises:
        ConfigError: something is pinned as something else.
    """
    locked, found = _locked(setup), wanted(setup)
    merged = dict(sorted({**found, **locked}.items()))
    if merged != locked:
        document = {"schema": SCHEMA, "plan": setup.plan.plan, "digests": merged}
        write_atomic(setup.root / lock_path(setup.plan_path), encode_document(document))
    check_lock(setup)
    return merged != locked
