"""How an attempt may end: one code per attempt, each with the stage that decides it."""

from enum import StrEnum


class Stage(StrEnum):
    """The stages of an attempt, in order."""

    EXTRACTION = "extraction"
    APPLYING = "applying"
    POLICY = "policy"
    RUNNING = "running"
    EVALUATION = "evaluation"
    SCORING = "scoring"


class Outcome(StrEnum):
    """The code of an attempt; ``stage`` says where it was decided."""

    stage: Stage

    def __new__(cls, code: str, stage: Stage) -> "Outcome":
        """A member whose value is ``code``."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.stage = stage
        return member

    PARSE_FAILED = "parse_failed", Stage.EXTRACTION
    EMPTY_PATCH = "empty_patch", Stage.EXTRACTION
    PATCH_TOO_LARGE = "patch_too_large", Stage.EXTRACTION

    PATCH_WRONG_FILE = "patch_wrong_file", Stage.APPLYING
    AMBIGUOUS_HUNK = "ambiguous_hunk", Stage.APPLYING
    HUNK_NOT_FOUND = "hunk_not_found", Stage.APPLYING
    UNANCHORED_INSERT = "unanchored_insert", Stage.APPLYING
    SYNTAX_ERROR = "syntax_error", Stage.APPLYING
    NOOP_PATCH = "noop_patch", Stage.APPLYING

    POLICY_VIOLATION = "policy_violation", Stage.POLICY

    CRASHED = "crashed", Stage.RUNNING
    TIMEOUT = "timeout", Stage.RUNNING
    OOM = "oom", Stage.RUNNING
    SANDBOX_VIOLATION = "sandbox_violation", Stage.RUNNING
    NO_CHECKPOINT = "no_checkpoint", Stage.RUNNING
    ASYNC_TAIL = "async_tail", Stage.RUNNING

    NONCAUSAL = "noncausal", Stage.EVALUATION
    STATEFUL_EVAL = "stateful_eval", Stage.EVALUATION
    BAD_LOGITS = "bad_logits", Stage.EVALUATION
    AUDIT_GAP = "audit_gap", Stage.EVALUATION
    NONDETERMINISTIC = "nondeterministic", Stage.EVALUATION
    IMPLAUSIBLE = "implausible", Stage.EVALUATION

    THRESHOLD_MISSED = "threshold_missed", Stage.SCORING
    INCONCLUSIVE = "inconclusive", Stage.SCORING
    OK = "ok", Stage.SCORING

    @property
    def earns_reward(self) -> bool:
        """Whether the reward formula applies: the mean loss met the threshold and nothing else went wrong."""
        return self in (Outcome.OK, Outcome.INCONCLUSIVE, Outcome.NONDETERMINISTIC)
