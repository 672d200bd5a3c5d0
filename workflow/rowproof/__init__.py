"""rowproof: leaderboard rows as file targets that carry their own proof."""
