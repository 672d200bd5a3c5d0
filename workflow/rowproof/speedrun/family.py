"""Registers the engines of this family. There is none yet: what is here is the referee, without boards."""

ENGINES = ()
