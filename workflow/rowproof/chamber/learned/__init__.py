"""Learned players: networks, training, checkpoints, and the policy that plays them without torch."""
