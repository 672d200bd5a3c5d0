"""The typed model of a partner set: ``config/partners/<set>.yaml``."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rowproof.errors import ConfigError
from rowproof.identities import identity, member_uri
from rowproof.plain_text import PlainLine

_HEX64 = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"[0-9a-f]{16}")
_PREFIX = re.compile(r"[0-9a-f]{12,16}")


class PartnerMember(BaseModel):
    """One member of a partner set.

    A public member shows ``params`` (name to quoted text). A private member shows its ``identity`` instead and, where
    it is known, ``params_sha256``, of which the identity must then follow; of a digest whose start alone is published
    ``params_sha256_prefix`` holds that start, and the identity is taken as stated. A scripted member without
    parameters is its class alone: its weights URI is null. A member with a checkpoint names it in ``weights_uri`` and
    has no parameters.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    # `class` is a keyword, so the attribute has another name than the key of the file.
    class_name: Annotated[str, Field(alias="class", pattern=r"^[a-z][a-z0-9_]*$")]
    split: Literal["public", "private"]
    role: Annotated[PlainLine, Field(min_length=1)]
    seed: Annotated[int, Field(ge=0)]
    checkpoint_step: Annotated[int, Field(ge=0)] | None = None
    weights_uri: Annotated[str, Field(min_length=1)] | None = None
    params: dict[str, str] | None = None
    params_sha256: str | None = None
    params_sha256_prefix: str | None = None
    identity: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "PartnerMember":
        if self.split == "public":
            withheld = (self.params_sha256, self.params_sha256_prefix, self.identity)
            if self.params is None or withheld != (None, None, None):
                raise ValueError("a public member must have params and neither a digest of them nor identity")
            if self.params and self.weights_uri is not None:
                raise ValueError("a member must have params or weights_uri, found both")
            return self
        if self.params is not None or self.weights_uri is not None:
            raise ValueError("a private member must not show params or weights_uri")
        if self.identity is None or not _IDENTITY.fullmatch(self.identity):
            raise ValueError(f"identity of a private member must be 16 hex digits, found {self.identity!r}")
        prefix = self.params_sha256_prefix
        if prefix is not None and not _PREFIX.fullmatch(prefix):
            raise ValueError(f"params_sha256_prefix must be 12 to 16 hex digits, found {prefix!r}")
        if self.params_sha256 is None:
            return self
        if not _HEX64.fullmatch(self.params_sha256):
            raise ValueError(f"params_sha256 must be 64 hex digits, found {self.params_sha256!r}")
        if prefix is not None:
            raise ValueError("params_sha256 must stand alone, found its prefix beside it")
        expected = identity(self.class_name, self.seed, self.checkpoint_step, self.resolved_uri)
        if self.identity != expected:
            raise ValueError(f"identity must be {expected} for these fields, found {self.identity!r}")
        return self

    @property
    def resolved_uri(self) -> str | None:
        """The weights URI that enters the identity; None also where a private member's digest is not known."""
        if self.params_sha256 is not None:
            return f"member://{self.class_name}/{self.params_sha256}"
        return member_uri(self.class_name, self.params) if self.params else self.weights_uri

    def seat(self) -> dict[str, Any]:
        """The member as plain data for a row's setup; ``params`` is None when they are withheld.

        A private member without ``params_sha256`` has its stated identity and no weights URI that it follows from.
        """
        stated = self.identity if self.params_sha256 is None else None
        return {
            "name": self.name,
            "class": self.class_name,
            "seed": self.seed,
            "checkpoint_step": self.checkpoint_step,
            "weights_uri": self.resolved_uri,
            "params": None if self.params is None else dict(self.params),
            "identity": stated or identity(self.class_name, self.seed, self.checkpoint_step, self.resolved_uri),
        }


class PartnerSet(BaseModel):
    """A frozen roster of partners; any change of a member makes a new version.

    ``floor`` is the least success rate (0 to 1) at which a member counts as competent, ``floor_probe`` how that is
    measured; a set that is only a diagnostic has neither.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_name: Annotated[Literal["rowproof/partner-set/1"], Field(alias="schema")]
    set_id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    version: Annotated[int, Field(ge=1)]
    task: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*@v[1-9][0-9]*$")]
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    floor_probe: Literal["fingerprint", "free_regrasp"] | None = None
    # Files hold lists; a tuple keeps the frozen model frozen all the way down.
    members: Annotated[tuple[PartnerMember, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _consistent(self) -> "PartnerSet":
        if (self.floor is None) != (self.floor_probe is None):
            raise ValueError("floor and floor_probe must be given together or not at all")
        for label, values in (
            ("names", [member.name for member in self.members]),
            ("identities", [member.seat()["identity"] for member in self.members]),
        ):
            if len(set(values)) != len(values):
                raise ValueError(f"{label} of members must be unique, found {values}")
        return self

    @property
    def label(self) -> str:
        """How records name the set: ``<set_id>@v<version>``."""
        return f"{self.set_id}@v{self.version}"

    def seats(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The named members as :meth:`PartnerMember.seat`, in roster order whatever the order of ``names``.

        Raises:
            ConfigError: a name is unknown or given twice.
        """
        known = [member.name for member in self.members]
        unknown = [name for name in names if name not in known]
        if unknown or len(set(names)) != len(names):
            raise ConfigError(f"members of {self.label} must be distinct names of {known}, found {list(names)}")
        return [member.seat() for member in self.members if member.name in names]
