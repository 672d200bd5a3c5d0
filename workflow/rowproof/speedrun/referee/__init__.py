"""The referee of the speedrun: it owns data, clock and evaluation, and trusts nothing that a patch can reach."""
