"""The policies of the handover, each a module of its name.

A scripted one offers ``place(cell, seen, initial_state_seed, root_seed)``, which gives the placement of one episode. A
learned one says ``LEARNED = True`` and offers ``build(uri, data)``, which makes such a callable of a checkpoint.
"""
