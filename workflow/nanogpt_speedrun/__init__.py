"""The environment ``nanogpt-speedrun`` under the name by which the loader of the verifiers library looks for it."""

from rowproof.speedrun.verifiers_env import load_environment

__all__ = ["load_environment"]
