"""The modules of a bomb as state machines; what is right to do is asked of :mod:`rowproof.gptnt.bomb.rules`."""
