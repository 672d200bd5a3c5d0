"""Who played: the entries of ``partners.json``, their identities, and who must sit there."""

from collections.abc import Mapping
from typing import Any

from rowproof.errors import RecordError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import Bundle
from rowproof.evidence.published.catalogue import ADHOC, known_classes
from rowproof.evidence.published.tables import STRICT, report
from rowproof.identities import identity, parameter_digest
from rowproof.records import NULL, Kinds, check_fields, decode

SEAT_SCHEMA: Mapping[str, Kinds] = {
    "checkpoint_step": (int, NULL),
    "class_name": (str,),
    "extra": (dict,),
    "name": (str,),
    "seed": (int,),
    "weights_uri": (str, NULL),
}


def read_seats(data: bytes) -> list[dict[str, Any]]:
    """The entries of ``partners.json``.

    Raises:
        RecordError: not a list of well-formed entries.
    """
    seats = decode(data, "partners.json")
    if type(seats) is not list:
        raise RecordError(f"partners.json: must be a list, found {type(seats).__name__}")
    for number_, seat in enumerate(seats):
        check_fields(seat, SEAT_SCHEMA, f"partners.json: entry {number_}")
        if any(type(value) is not str for value in seat["extra"].values()):
            raise RecordError(f"partners.json: entry {number_}: extra must hold text only")
    return seats


def seat_identity(seat: Mapping[str, Any]) -> str:
    """The identity of an entry of ``partners.json``."""
    return identity(seat["class_name"], seat["seed"], seat["checkpoint_step"], seat["weights_uri"])


def partner_rows(table: CheckTable, bundle: Bundle) -> None:
    """Reference rows: known classes and identities; leaves ``seats`` in the bundle."""
    stated = bundle.meta["partner_hashes"]
    with table.guard("partners", "partners.json is a list of well-formed seats"):
        bundle.seats = read_seats(bundle.need("partners.json"))
    if bundle.seats is None:
        return
    classes = known_classes(bundle.catalogue)
    for seat in bundle.seats:
        known = seat["class_name"] in classes
        table.add(f"partner:{seat['name']}:registered", known, "the class is a known one", seat["class_name"])
    must = "seat names and recomputed identities equal partner_hashes"
    with table.guard("partner:hashes", must):
        found = {seat["name"]: seat_identity(seat) for seat in bundle.seats}
        wrong = sorted(name for name in found.keys() | stated.keys() if found.get(name) != stated.get(name))
        report(table, "partner:hashes", must, [f"{name!r} differs" for name in wrong], f"{len(found)} seats")


def seat_rows(table: CheckTable, bundle: Bundle) -> None:
    """Strict rows: the seats are those of the run and of the registered set."""
    if bundle.seats is None:
        return
    n_partners = sum(not seat["name"].startswith("ego:") for seat in bundle.seats)
    must = "at least one partner seat is listed"
    table.add(f"{STRICT}partners:nonempty", n_partners > 0, must, f"{n_partners} partner seats")
    must = "the parameters in extra have the digest of the member's URI"
    with table.guard(f"{STRICT}partners:digest", must):
        problems, n_members = [], 0
        for seat in bundle.seats:
            if (seat["weights_uri"] or "").startswith("member://"):
                n_members += 1
                problems += _member_digest_problems(seat, bundle.catalogue)
        report(table, f"{STRICT}partners:digest", must, problems, f"{n_members} members")
    must = "seats are those that the command, the records and the registered set give, in order of first use"
    with table.guard(f"{STRICT}partners:roster", must):
        expected = _expected_seats(bundle)
        found = bundle.seats
        problems = []
        if [seat["name"] for seat in found] != [seat["name"] for seat in expected]:
            problems.append(f"seats {[s['name'] for s in found]}, expected {[s['name'] for s in expected]}")
        if list(bundle.meta["partner_hashes"]) != [seat["name"] for seat in expected]:
            problems.append("partner_hashes does not list the seats in their order")
        for seat, wanted in zip(found, expected, strict=False):
            problems += _seat_problems(seat, wanted)
        report(table, f"{STRICT}partners:roster", must, problems, f"{len(found)} seats")


def _member_digest_problems(seat: Mapping[str, Any], catalogue: Mapping[str, Any]) -> list[str]:
    extra = seat["extra"]
    if "withheld_params_sha256" in extra:
        digest = extra["withheld_params_sha256"]
    else:
        geometry = {key for chosen in catalogue["sets"].values() for key in chosen["seat"]}
        digest = parameter_digest({key: value for key, value in extra.items() if key not in geometry})
    expected = f"member://{seat['class_name']}/{digest}"
    return [] if seat["weights_uri"] == expected else [f"{seat['name']!r}: extra gives {expected}"]


def _expected_seats(bundle: Bundle) -> list[dict[str, Any]]:
    """Seats in order of first use; ``identity`` stands for the fields of a set member, which only a hash tells."""
    meta, catalogue = bundle.meta, bundle.catalogue
    if bundle.kind == "cell":
        if bundle.cell is None:
            raise RecordError("an admission cell must have a plan that lists it")
        ego = catalogue["cell_egos"][bundle.cell.ego]
        partner = meta["partner_set_id"].removeprefix(ADHOC)
        return [
            _seat(f"ego:{ego['class']}", ego["class"], None, ego["seat"]),
            _seat(f"partner:{partner}", partner, None, catalogue["cell_partners"][partner]["seat"]),
        ]
    if bundle.command is None:
        raise RecordError("the command could not be read")
    if bundle.kind == "single":
        partner = meta["partner_set_id"].removeprefix(ADHOC)
        _ego_seat(meta["policy_id"], catalogue)
        weights = bundle.command.one("--partner-weights")
        return [_seat(partner, partner, weights, catalogue["pairs"][partner]["seat"])]
    if bundle.records is None:
        raise RecordError("the records could not be loaded")
    geometry = catalogue["sets"][meta["partner_set_id"]]["seat"]
    seats: dict[str, dict[str, Any]] = {}
    for seed in bundle.seeds:
        policy = meta["policy_id"]
        if bundle.kind == "seeded set":
            policy = bundle.records[seed][0]["metadata"]["seed_policy"]
        ego = _ego_seat(policy, catalogue)
        if ego is not None:
            seats.setdefault(ego["name"], ego)
        for member in bundle.members:
            seat = {"name": member["name"], "identity": member["identity"], "seat": member.get("seat", geometry)}
            seats.setdefault(member["name"], {**seat, "class_name": member["class"]})
    return list(seats.values())


def _seat(name: str, class_name: str, uri: str | None, geometry: Mapping[str, str]) -> dict[str, Any]:
    return {
        "checkpoint_step": None,
        "class_name": class_name,
        "extra": dict(geometry),
        "name": name,
        "seed": 0,
        "weights_uri": uri,
    }


def _ego_seat(policy: str, catalogue: Mapping[str, Any]) -> dict[str, Any] | None:
    """The seat that a policy leaves in ``partners.json``; None when it leaves none."""
    prefix, colon, uri = policy.partition(":")
    key = prefix + colon
    if key not in catalogue["egos"] or (colon and not uri):
        raise RecordError(f"the policy must be a known one, found {policy!r}")
    ego = catalogue["egos"][key]
    return None if ego is None else _seat(f"ego:{policy}", ego["class"], uri or None, ego["seat"])


def _seat_problems(seat: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    name = wanted["name"]
    if "identity" not in wanted:
        return [f"{name!r}: {key} differs from the known seat" for key in wanted if seat.get(key) != wanted[key]]
    problems = []
    if seat["class_name"] != wanted["class_name"] or seat_identity(seat) != wanted["identity"]:
        problems.append(f"{name!r}: not the registered identity {wanted['identity']}")
    if "withheld_params_sha256" not in seat["extra"]:
        geometry = {key: value for key, value in seat["extra"].items() if key in wanted["seat"]}
        if geometry != wanted["seat"]:
            problems.append(f"{name!r}: seat geometry {geometry}, expected {wanted['seat']}")
    return problems
