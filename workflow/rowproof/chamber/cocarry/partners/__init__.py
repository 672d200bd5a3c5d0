"""The partner classes of co-carry, each a module of its name.

It offers ``build(params, where)``, which gives a :class:`~rowproof.chamber.cocarry.player.Player`. ``params`` are those
of the partner set (name to decimal text, None when withheld), ``where`` names the member in messages. A class whose
weights are in the checkpoint of the ego says ``LEARNED = True`` and offers ``build(uri, data)`` instead.
"""
