"""The presenter classes of the handover, each a module of its name.

It offers ``build(params, where)``, which gives a :class:`~rowproof.chamber.handover_episodes.Presenter`. ``params`` are
those of the partner set (name to decimal text, None when withheld), ``where`` names the member in messages.
"""
