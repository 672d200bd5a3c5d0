"""Speedruns: patches to a small language-model training script, timed and judged from outside of it."""
