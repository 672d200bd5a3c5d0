"""The rules of the manual (version 1, code 241) as tables and pure functions: what is right, whoever asks.

Wires, positions, stages, panels and columns count from 1; maze cells and list indices from 0.
"""
