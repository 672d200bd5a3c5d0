"""Bundles, verification, statistics, plans and leaderboards; knows no benchmark family."""
