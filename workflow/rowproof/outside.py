"""Commands for what others have a part in: witnesses of plans, signatures of rows, rows that are handed in."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rowproof.errors import RowproofError


def add_commands(commands: Any, project_root: Callable[[], Path], cores: int) -> None:
    """Add the commands to the parser; ``project_root`` gives the project that they are called in."""
    sub = commands.add_parser("witness", help="time stamps of plans by an outside authority")
    sub.set_defaults(project_root=project_root)
    steps = sub.add_subparsers(dest="step", required=True, metavar="STEP")
    step = steps.add_parser("request", help="write a request for a stamp of a board's plan, to send to an authority")
    step.add_argument("board", metavar="BOARD")
    step.add_argument("--output", type=Path, metavar="FILE", help="default: work/witness/<plan>.tsq")
    step.set_defaults(run=_request)
    step = steps.add_parser("attach", help="check an authority's response and store it beside the plan")
    step.add_argument("board", metavar="BOARD")
    step.add_argument("token", type=Path, metavar="RESPONSE")
    step.add_argument("--authority", required=True, help="its certificates are config/authorities/<name>.pem")
    step.add_argument("--request", type=Path, metavar="FILE", help="default: work/witness/<plan>.tsq")
    step.set_defaults(run=_attach)
    step = steps.add_parser("check", help="check all witnesses that boards list")
    step.add_argument("boards", nargs="*", metavar="BOARD", help="default: all boards")
    step.set_defaults(run=_check)

    sub = commands.add_parser("sign", help="sign the digest of a row with an SSH key")
    sub.add_argument("row", metavar="ROW")
    sub.add_argument("--key", type=Path, required=True, metavar="FILE")
    sub.add_argument("--name", help="of the signature's file (default: that of the key)")
    sub.set_defaults(run=_sign, project_root=project_root)

    sub = commands.add_parser("intake", help="check rows that are handed in, and take them with --accept")
    sub.add_argument("path", type=Path, metavar="FOLDER-OR-ZIP")
    sub.add_argument("--accept", action="store_true", help="copy the rows into results/ when everything is proven")
    sub.add_argument("--beacon", metavar="TEXT", help="a text that the maker of the rows could not know, to draw by")
    sub.add_argument("--cores", type=int, default=cores, metavar="N", help="processes at once (all)")
    sub.set_defaults(run=_intake, project_root=project_root)


def _setup(root: Path, name: str) -> Any:
    from rowproof.boards import load_board

    return load_board(root, name)


def _request_path(root: Path, plan: str) -> Path:
    return root / "work" / "witness" / f"{plan}.tsq"


def _request(args: argparse.Namespace) -> int:
    from rowproof import git
    from rowproof.evidence.witness import make_request
    from rowproof.files import write_atomic
    from rowproof.history import committed_file

    root = args.project_root()
    setup = _setup(root, args.board)
    blob = git.blob_id(setup.plan_bytes)
    if committed_file(root, "HEAD", setup.plan_path) != setup.plan_bytes:
        raise RowproofError(f"{setup.plan_path}: must be committed as it is before it is stamped: commit it")
    path = args.output or _request_path(root, setup.board.plan)
    write_atomic(path, make_request(setup.plan_bytes))
    print(f"wrote {path}: a request for {setup.plan_path}, blob {blob}")
    print(f"send it: curl -H 'Content-Type: application/timestamp-query' --data-binary @{path} -o response.tsr URL")
    print(f"then: rowproof witness attach {args.board} response.tsr --authority NAME")
    return 0


def _attach(args: argparse.Namespace) -> int:
    import re

    from rowproof import git
    from rowproof.evidence.witness import (
        MAX_AUTHORITY_BYTES,
        MAX_TOKEN_BYTES,
        check_token,
        nonce_of,
        read_bounded,
        shown,
    )
    from rowproof.files import write_atomic

    root = args.project_root()
    setup = _setup(root, args.board)
    if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", args.authority):
        raise RowproofError(
            f"--authority must be a name of small letters, digits and single -, found {args.authority!r}"
        )
    pinned = read_bounded(root / "config" / "authorities" / f"{args.authority}.pem", MAX_AUTHORITY_BYTES)
    token = read_bounded(args.token, MAX_TOKEN_BYTES)
    stamp = check_token(token, setup.plan_bytes, pinned)
    request = args.request or _request_path(root, setup.board.plan)
    if args.request is not None or request.is_file():
        asked = nonce_of(read_bounded(request, MAX_TOKEN_BYTES))
        if asked != stamp.nonce:
            raise RowproofError(f"{args.token}: must answer {request}, found another nonce: attach the answer to it")
    blob = git.blob_id(setup.plan_bytes)
    name = f"config/witnesses/{setup.board.plan}/{blob[:12]}-{args.authority}.tsr"
    target = root / name
    if target.is_file() and target.read_bytes() != token:
        raise RowproofError(f"{name}: must not exist with other content: one stamp by one authority is enough")
    write_atomic(target, token)
    print(f"wrote {name}: commit it, and list it in config/boards/{args.board}.yaml:")
    print("witnesses:")
    for number, (key, value) in enumerate(
        {
            "kind": "rfc3161",
            "blob": f'"{blob}"',
            "token": name,
            "authority": args.authority,
            "time": f'"{shown(stamp.time)}"',
        }.items()
    ):
        print(f"  {'-' if number == 0 else ' '} {key}: {value}")
    return 0


def _check(args: argparse.Namespace) -> int:
    from rowproof.boards import load_config
    from rowproof.evidence.witness import check_board

    root = args.project_root()
    _, setups = load_config(root)
    unknown = [name for name in args.boards if name not in setups]
    if unknown:
        raise RowproofError(f"{', '.join(unknown)}: must be a board of this project ({', '.join(setups)})")
    tables = [check_board(root, setups[name].board) for name in args.boards or setups]
    for table in tables:
        table.render(print)
    if any(table.verdict == "fail" for table in tables):
        return 1
    return 2 if any(check.verdict == "unknown" for table in tables for check in table.checks) else 0


def _sign(args: argparse.Namespace) -> int:
    from rowproof.evidence.signatures import sign

    root = args.project_root()
    row = args.row.removeprefix("./").removeprefix("results/").rstrip("/")
    name = args.name or args.key.name.removesuffix(".pub").lower().replace("_", "-")
    print(f"wrote {os.path.relpath(sign(root, row, args.key, name))}: commit it")
    return 0


def _intake(args: argparse.Namespace) -> int:
    from rowproof.intake import intake

    return intake(args.project_root(), args.path, args.beacon, args.accept, args.cores, print)
