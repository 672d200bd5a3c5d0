"""The policies of co-carry, each a module of its name.

A scripted one offers ``build(root_seed)``, which gives a :class:`~rowproof.chamber.cocarry.player.Player` whose random
streams, if any, have this root. A learned one says ``LEARNED = True`` and offers ``build(uri, data)``, which makes a
player of a checkpoint.
"""
