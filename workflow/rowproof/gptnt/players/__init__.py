"""Players: what plays a role in a game, without a language model."""
