"""A room: one game of a spec, from the first turn to the records, in virtual time alone.

Synchronous play stops the clock while players think. In asynchronous play every answer takes its latency in game time
and events happen in the order of time, so that a game is the same on every machine.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.bomb import Bomb, build
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.observation import observe
from rowproof.gptnt.bomb.oracle import next_step, random_step
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.players.turns import (
    ASYNC,
    DEFUSER,
    EXPERT,
    GAME_ACTION,
    GUARDRAIL,
    INVALID_LOCATION,
    LOTTERY,
    MAGIC,
    NOTHING,
    REFLECTION,
    SCRIPTED_USAGE,
    SEND_MESSAGE,
    SYNC,
    UNKNOWN,
    Action,
    Answer,
    AnswerError,
    Player,
    Setup,
    Turn,
    Usage,
    answer_fault,
    read_output,
)
from rowproof.records import digest

T = TypeVar("T")
Record = dict[str, Any]

FORMAT_VERSION = 2
# Outcomes that count; a hard crash makes a game invalid all the same.
VALID_OUTCOMES = ("solved", "timeout", "strikeout")
# What an answer takes in asynchronous play unless the player says otherwise, and the pause before the next turn.
LATENCY_MS = 3000
PAUSE_MS = 500

# Sent for a player whose model refused to answer.
REPHRASE = "I could not work with that. Please say it again in other words."

# One sentence per kind of error, for the player who made it; a refused answer has none.
FEEDBACK = {
    "action_not_present": "Your answer held no action, so the turn passed: put one action into the action tag.",
    "action_parsing_failed": "Your action could not be read, so the turn passed: write one valid JSON object.",
    "multiple_actions_present": "Your answer held several actions and only the first was done: send one per turn.",
    INVALID_LOCATION: "The mark that you chose is not in view, so the turn passed: choose one that you see.",
    "out_of_bounds_coordinate": "The point that you chose is outside the picture, so the turn passed: stay inside.",
    "reasoning_absent": "Your answer held no reasoning: write it into the thought tag, before the action.",
    "reasoning_split_across_blocks": "Your reasoning was split: write it once, before the action.",
    "reasoning_mixed_with_untagged_text": "Text stood outside the tags: keep all of it inside.",
    "action_placed_before_reasoning": "Your action came before the reasoning: write the reasoning first.",
    "content_after_action_complete": "Text came after your action: end the answer with the action.",
    "malformed_tag_structure": "The tags of your answer were damaged: open and close each of them once.",
    "max_output_tokens_exceeded": "Your answer was too long and was cut off, so the turn passed: be brief.",
    "server_error": "Your answer was lost on the way, so the turn passed: answer again.",
    UNKNOWN: "Your answer was not one of those allowed to you, so the turn passed: look at the commands again.",
}

_OUTCOMES = {
    "solved": "The bomb was defused.",
    "timeout": "The bomb exploded because the time ran out.",
    "strikeout": "The bomb exploded because of too many mistakes.",
    "detonated": "The bomb exploded.",
}
_REFLECT_TOGETHER = (
    "Look back at the game: what came of it and what your part was, where you and your partner misunderstood each "
    "other, which mistakes happened and how they were noticed, what worked, what you would change, and what you "
    "learned."
)
_REFLECT_ALONE = (
    "Look back at the game: what came of it, which mistakes happened and how they were noticed, what worked, what you "
    "would change, and what you learned."
)


class Provenance(NamedTuple):
    """What wrote a record.

    Attributes:
        version: of the package; neither blank nor 0.0.0, which readers refuse.
        commit: of its sources, with ``-dirty`` if they were changed; None if it is not known.
        assets_digest: see :func:`rowproof.gptnt.assets.assets_digest`; empty if it is not known.
    """

    version: str
    commit: str | None = None
    assets_digest: str = ""


class Seat(NamedTuple):
    """Who plays a role.

    Attributes:
        name: of the player, as the spec has it.
        player: the player.
        capabilities: plain data, for the record.
    """

    name: str
    player: Player
    capabilities: Mapping[str, Any]


class Rules(NamedTuple):
    """What a room is free to choose.

    Attributes:
        seed: root seed of the players' random streams.
        latency_ms: see :data:`LATENCY_MS`.
        feedback_to_solo: tell also a lone player of errors in its answers; the frozen suites do not.
    """

    seed: int = 0
    latency_ms: int = LATENCY_MS
    feedback_to_solo: bool = False


DEFAULT_RULES = Rules()


class Game(NamedTuple):
    """What is left of a game, as plain data for canonical JSON.

    Attributes:
        summary: outcome, seconds_remaining, strike_count, num_modules_solved, n_modules, time_limit, is_hard_crash,
            n_rounds (turns of the Defuser), duration_s (game time).
        records: by role; see :func:`play`.
        failure: what broke the game off; empty if nothing did.
    """

    summary: dict[str, Any]
    records: dict[str, Record]
    failure: str = ""

    @property
    def valid(self) -> bool:
        """Whether the game counts."""
        return not self.failure and self.summary["outcome"] in VALID_OUTCOMES


def play(
    spec: Mapping[str, Any],
    defuser: Seat,
    expert: Seat | None,
    manual: Manual,
    provenance: Provenance,
    rules: Rules = DEFAULT_RULES,
) -> Game:
    """Play one game.

    A record has the fields of the benchmark's record files: ``format_version``, ``session_id`` and ``player_uuid``, the
    ``footer``, and one entry of ``steps`` per row. Columns that hold JSON, messages, observations or usage there hold
    plain values here; a location is a mark, and a picture in a message is its digest. Times are seconds of game time
    since the start. All ids are derived from the spec and the seats, so the same game always has the same ones.

    Args:
        spec: plain data of the request: ``mission_spec``, both protocols, the names of the players.
        defuser: who plays the Defuser.
        expert: who plays the Expert; None if the spec has none.
        manual: given to each player whose protocol includes it.
        provenance: for the footers.
        rules: of the room.

    Raises:
        ConfigError: the seats are not those of the spec, or no bomb can be built from its mission.
    """
    if provenance.version in ("", "0.0.0"):
        raise ConfigError(f"the version of the package must be known, found {provenance.version!r}: install it")
    seats = {DEFUSER: defuser} | ({} if expert is None else {EXPERT: expert})
    for role in (DEFUSER, EXPERT):
        asked, found = spec[f"{role}_name"], seats[role].name if role in seats else None
        if asked != found:
            raise ConfigError(f"the {role} must be {asked!r} as the spec has it, found {found!r}")
    return _Room(spec, seats, manual, provenance, rules).play()


class _Crash(Exception):
    """A player failed in a way that ends the game."""


class _Seated:
    """A player during the game."""

    def __init__(self, role: str, seat: Seat, protocol: Mapping[str, Any], uuid: str) -> None:
        self.role = role
        self.seat = seat
        self.protocol = protocol
        self.alone: bool = protocol["is_playing_alone"]
        self.wants_feedback: bool = seat.capabilities.get("enable_nobf_generation", True)
        self.uuid = uuid
        self.turns = 0
        self.feedback: list[str] = []
        self.messages: list[str] = []
        self.steps: list[Record] = []


def _ask(one: _Seated, call: Callable[[Player], T]) -> T:
    try:
        return call(one.seat.player)
    except AnswerError:
        raise
    except Exception as error:
        # Whatever a player does, the room must live on.
        raise _Crash(f"{one.role} {one.seat.name}: {type(error).__name__}: {error}") from error


def _ask_turn(one: _Seated, turn: Turn) -> Answer:
    try:
        answer = _ask(one, lambda player: player.turn(turn))
    except AnswerError as error:
        _require_answer(one, error.answer)
        raise
    _require_answer(one, answer)
    return answer


def _require_answer(one: _Seated, answer: Any) -> None:
    if fault := answer_fault(answer):
        raise _Crash(f"{one.role} {one.seat.name}: {fault}")


class _Begun(NamedTuple):
    """A turn whose answer is on its way."""

    turn: Turn
    action: Action
    errors: tuple[str, ...]
    answer: Answer
    state: Record | None
    begun_ms: int


class _Room:
    def __init__(
        self, spec: Mapping[str, Any], seats: Mapping[str, Seat], manual: Manual, provenance: Provenance, rules: Rules
    ) -> None:
        self.spec = spec
        self.provenance = provenance
        self.rules = rules
        self.mission = Mission.from_data(spec["mission_spec"], "mission_spec")
        self.bomb: Bomb = build(self.mission)
        self.style: str = spec["defuser_protocol"]["communication_style"]
        # The fingerprint follows from the rest.
        asked = {key: value for key, value in spec.items() if key != "fingerprint"}
        who = {role: dict(seat.capabilities) for role, seat in seats.items()}
        self.root = digest({"spec": asked, "capabilities": who, "rules": list(rules)})
        self.session_id = _uuid(self.root, "session")
        self.game_uuid = _uuid(self.root, "game")
        self.lottery = Stream(self.mission.key, "lottery")
        # When the last answer was there.
        self.last_ms = 0
        self.seated = [_Seated(r, seat, spec[f"{r}_protocol"], _uuid(self.root, r)) for r, seat in seats.items()]
        self.manual = manual

    def play(self) -> Game:
        failure = ""
        try:
            self._configure()
            if self.style == SYNC:
                self._play_sync()
            else:
                self._play_async()
        except (_Crash, AnswerError) as crash:
            failure = str(crash)
        final = self.bomb.state()
        for one in self.seated:
            if one.role == DEFUSER and one.steps:
                # The last turn of the Defuser shows how the game ended; the look back is no turn.
                one.steps[-1]["bomb_state"] = final
        if not failure:
            self._reflect()
        summary = {
            "outcome": self.bomb.outcome,
            "seconds_remaining": self.bomb.seconds_remaining,
            "strike_count": len(self.bomb.strikes),
            "num_modules_solved": self.bomb.modules_solved,
            "n_modules": len(self.bomb.modules),
            "time_limit": self.mission.time_limit,
            "is_hard_crash": bool(failure),
            "n_rounds": self.seated[0].turns,
            "duration_s": self.bomb.clock.game_ms / 1000,
        }
        # As in the benchmark, a player without steps leaves no record; the counts tell that from a lost record.
        ends = {
            "is_hard_crash": bool(failure),
            "step_counts": {one.role: len(one.steps) for one in self.seated},
            "duration_s": summary["duration_s"],
        }
        records = {one.role: self._record(one, final, ends) for one in self.seated if one.steps}
        return Game(summary, records, failure)

    def _configure(self) -> None:
        for one in self.seated:
            setup = Setup(
                role=one.role,
                alone=one.alone,
                style=self.style,
                manual=self.manual if one.protocol["include_manual"] else None,
                stream=f"gptnt/{self.root}/{one.role}",
                seed=self.rules.seed,
                latency_ms=self.rules.latency_ms if self.style == ASYNC else 0,
                step_ms=self.mission.time_step_size,
                magic=one.protocol["allow_magic_actions"],
                lottery=one.protocol["allow_lottery_actions"],
            )
            _ask(one, lambda player, setup=setup: player.configure(setup))

    # ---- time --------------------------------------------------------------------------------------------------

    def _play_sync(self) -> None:
        bomb = self.bomb
        while not bomb.over:
            for one in self.seated:
                self._finish(one, self._begin(one, bomb.clock.game_ms), bomb.clock.game_ms)
                if one.role == DEFUSER and not bomb.over:
                    bomb.advance(self.mission.time_step_size)
                if bomb.over:
                    break

    def _play_async(self) -> None:
        bomb = self.bomb
        # Per player when its next event is, and the turn that ends then; None if one begins.
        events: list[tuple[int, _Begun | None]] = [(0, None) for _ in self.seated]
        while True:
            # Ties go to the Defuser, who is seated first.
            going = [i for i, (_, begun) in enumerate(events) if begun is not None or not bomb.over]
            if not going:
                return
            index = min(going, key=lambda i: events[i][0])
            (at_ms, begun), one = events[index], self.seated[index]
            if not bomb.over:
                bomb.advance(at_ms - bomb.clock.game_ms)
            if begun is not None:
                # An answer on its way when the game ends is still recorded.
                self._finish(one, begun, at_ms)
                events[index] = at_ms + PAUSE_MS, None
            elif not bomb.over:
                begun = self._begin(one, at_ms)
                latency_ms = begun.answer.latency_ms
                events[index] = at_ms + (self.rules.latency_ms if latency_ms is None else latency_ms), begun

    # ---- one turn ----------------------------------------------------------------------------------------------

    def _begin(self, one: _Seated, now_ms: int) -> _Begun:
        one.turns += 1
        feedback = () if one.alone and not self.rules.feedback_to_solo else tuple(one.feedback)
        seen = observe(self.bomb, one.turns) if one.role == DEFUSER else None
        clock_ms = None if seen is None else now_ms
        turn = Turn(one.turns, clock_ms, feedback, tuple(one.messages), one.alone, seen)
        one.feedback.clear()
        one.messages.clear()
        state = self.bomb.state() if one.role == DEFUSER else None
        try:
            answer = _ask_turn(one, turn)
        except AnswerError as error:
            # A refusal to answer is passed on to the partner, if there is one.
            refused = GUARDRAIL in error.errors and not one.alone
            action = Action(SEND_MESSAGE, message=REPHRASE) if refused else NOTHING
            return _Begun(turn, action, error.errors, error.answer, state, now_ms)
        action, errors = read_output(answer.output, one.protocol)
        if action.location is not None and action.location not in turn.observation["marks"]:
            action, errors = NOTHING, (*errors, INVALID_LOCATION)
        return _Begun(turn, action, (*answer.errors, *errors), answer, state, now_ms)

    def _finish(self, one: _Seated, begun: _Begun, now_ms: int) -> None:
        self.last_ms = now_ms
        self._record_step(one, begun, now_ms)
        self._dispatch(one, begun.action)
        if one.wants_feedback:
            sentences = [FEEDBACK.get(error, FEEDBACK[UNKNOWN]) for error in begun.errors if error != GUARDRAIL]
            if sentences:
                one.feedback.append(f"<execution-feedback>{' '.join(sentences)}</execution-feedback>")

    def _dispatch(self, one: _Seated, action: Action) -> None:
        if action.kind == SEND_MESSAGE:
            for other in self.seated:
                if other is not one:
                    other.messages.append(action.message)
        elif action.kind == GAME_ACTION:
            if action.action == MAGIC:
                step = next_step(self.bomb)
            elif action.action == LOTTERY:
                step = random_step(self.bomb, self.lottery)
            else:
                step = action.action, action.location
            if step is not None:
                # A bomb that is over minds nothing.
                self.bomb.act(*step)

    # ---- records -----------------------------------------------------------------------------------------------

    def _record_step(self, one: _Seated, begun: _Begun, now_ms: int) -> None:
        answer, turn = begun.answer, begun.turn
        self._append(
            one,
            answer,
            begun_ms=begun.begun_ms,
            now_ms=now_ms,
            kind=begun.action.kind,
            output=begun.action.data(),
            text=turn.text,
            errors=begun.errors,
            state=begun.state,
            observation=turn.observation,
        )

    def _append(
        self,
        one: _Seated,
        answer: Answer,
        *,
        begun_ms: int,
        now_ms: int,
        kind: str,
        output: Record,
        text: str | None,
        errors: Sequence[str],
        state: Record | None = None,
        observation: Record | None = None,
    ) -> None:
        new = [] if text is None else [text]
        if answer.new_messages is not None:
            new = list(answer.new_messages)
        one.steps.append(
            {
                "step": len(one.steps) + 1,
                "timestamp": now_ms / 1000,
                "role": one.role,
                "session_id": self.session_id,
                "player_uuid": one.uuid,
                "player_name": one.seat.name,
                "output": output,
                "raw_output": answer.raw_output,
                "thoughts": answer.thoughts,
                "input_messages": None if answer.input_messages is None else list(answer.input_messages),
                "new_messages": new,
                "bomb_state": state,
                "observation": observation,
                "usage": _usage(answer.usage),
                "num_prompt_truncations": answer.num_prompt_truncations,
                "error_type": list(errors),
                "is_reflection": kind == REFLECTION,
                "output_kind": kind,
                "requested_at": begun_ms / 1000,
                "responded_at": now_ms / 1000,
                "observation_at": None if observation is None else begun_ms / 1000,
            }
        )

    def _reflect(self) -> None:
        outcome = _OUTCOMES[self.bomb.outcome]
        now_ms = max(self.last_ms, self.bomb.clock.game_ms)
        for one in self.seated:
            text = f"{outcome} {_REFLECT_ALONE if one.alone else _REFLECT_TOGETHER}"
            errors: tuple[str, ...] = ()
            try:
                answer = one.seat.player.reflect(text)
                message = answer.output["result"]["data"]["message"]
            except AnswerError as error:
                answer, errors = error.answer, error.errors
                message = getattr(answer, "raw_output", None) or ""
            except Exception:
                # Nothing depends on a look back: a game stays complete without it.
                continue
            if answer_fault(answer):
                continue
            self._append(
                one,
                answer,
                begun_ms=now_ms,
                now_ms=now_ms,
                kind=REFLECTION,
                output={"message": message},
                text=text,
                errors=(*answer.errors, *errors),
            )

    def _record(self, one: _Seated, final: Record, ends: Record) -> Record:
        uuids = {other.role: other.uuid for other in self.seated}
        capabilities = {other.role: dict(other.seat.capabilities) for other in self.seated}
        return {
            "format_version": FORMAT_VERSION,
            "session_id": self.session_id,
            "player_uuid": one.uuid,
            "footer": {
                "gptnt_version": self.provenance.version,
                "git_sha": self.provenance.commit,
                "assets_digest": self.provenance.assets_digest,
                "descriptor": {
                    "experiment_spec": dict(self.spec),
                    "session_id": self.session_id,
                    "expert_uuid": uuids.get(EXPERT),
                    "defuser_uuid": uuids[DEFUSER],
                    "game_uuid": self.game_uuid,
                    "defuser_capabilities": capabilities[DEFUSER],
                    "expert_capabilities": capabilities.get(EXPERT),
                    "start_time": 0.0,
                },
                "final_bomb_state": final if one.role == DEFUSER else None,
                "role": one.role,
                **ends,
            },
            "steps": one.steps,
        }


def merged_steps(game: Game) -> list[Record]:
    """The steps of both players in the order in which they took effect.

    At the same instant the Expert comes first in synchronous play, where it answers in the round before, and the
    Defuser in asynchronous play.
    """
    records = list(game.records.values())
    styles = {r["footer"]["descriptor"]["experiment_spec"]["defuser_protocol"]["communication_style"] for r in records}
    first = DEFUSER if ASYNC in styles else EXPERT
    steps = [step for record in records for step in record["steps"]]
    return sorted(steps, key=lambda step: (step["is_reflection"], step["timestamp"], step["role"] != first))


def _usage(usage: Usage) -> Record:
    if usage is SCRIPTED_USAGE:
        return dict(_SCRIPTED)
    return usage._asdict() | {"details": dict(usage.details)}


_SCRIPTED = SCRIPTED_USAGE._asdict() | {"details": {}}


def _uuid(root: str, part: str) -> str:
    """An id in the form of RFC 9562, version 8: derived from content instead of drawn."""
    digits = digest([root, part])
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
