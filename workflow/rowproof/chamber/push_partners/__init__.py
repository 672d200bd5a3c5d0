"""The partner classes of the push task, each a module of its name.

It offers ``build(params, where)``, the partner at the start of one episode, a callable as an ego is. ``params`` are
those of the partner set (name to decimal text, None when withheld), ``where`` names the member in messages.
"""
