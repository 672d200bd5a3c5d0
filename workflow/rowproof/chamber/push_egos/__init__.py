"""The policies of the push task, each a module of its name.

It offers ``build(seed, episode_idx, root_seed)``, the ego at the start of one episode: a callable from an observation
(float32, shape (10,)) to an action (float32, shape (2,)).
"""
