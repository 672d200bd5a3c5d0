"""Forged copies of bundles and boards, sealed again completely, and the score of a verifier that is shown them."""
