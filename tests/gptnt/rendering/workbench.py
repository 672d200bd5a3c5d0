"""Observations of every kind of module, and what can be read off their pictures."""

import io

import numpy as np
from gptnt.bomb.workbench import edgework, spare_wires, zoomed
from PIL import Image
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.observation import look
from rowproof.gptnt.bomb.prng import Stream


def module(component, seed=1, edge=None):
    static, run = Stream(str(seed), "static"), Stream(str(seed), "run")
    return MODULES[component].generate(static, run, edge or edgework())


def close(component, seed=1, game_ms=0):
    """An observation of a player close to a module; needy ones are awake from 60 s on."""
    bomb = zoomed(module(component, seed), spare_wires(edgework()))
    bomb.advance(game_ms)
    return look(bomb, 1)


def with_view(seen, **changes):
    """An observation with other fields of its module."""
    return {**seen, "module": {**seen["module"], **changes}}


def pixels(data):
    """A picture as an array of shape (height, width, 3)."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(np.int16)


def distance(one, other):
    """How many pixels of two pictures of one size clearly differ."""
    return int((np.abs(pixels(one) - pixels(other)).max(axis=2) > 40).sum())
