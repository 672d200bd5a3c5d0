"""The capability fingerprint of a player."""

from collections.abc import Mapping
from typing import Any

from rowproof.gptnt.models import stable_digest

# The first version of the fingerprint's recipe. A later field joins a new version, so that published ones still hold.
FINGERPRINT_V1 = frozenset(
    {
        *("player_name", "player_type", "thinking_method", "structured_output_mode", "include_schema_in_instructions"),
        *("max_observations_per_request", "image_dimensions", "tokens_per_image", "interaction_location_method"),
        *("coordinate_mode", "preserve_last_frame_for_n_turns", "enable_nobf_generation"),
    }
)


def fingerprint(capabilities: Mapping[str, Any]) -> str:
    """Digest of capabilities (plain data, complete): of everything but ``usage_limits``."""
    return stable_digest({name: value for name, value in capabilities.items() if name in FINGERPRINT_V1})
