"""A shipped player could not be composed, with or without another provider."""

import pytest
from gptnt.harness.workbench import refusal
from helpers import ROOT
from rowproof.gptnt.names import config_names
from rowproof.gptnt.player_config import PLAYERS, PROVIDERS, load_player, load_provider


@pytest.mark.parametrize("provider", [None, *config_names(ROOT / PROVIDERS)])
@pytest.mark.parametrize("name", config_names(ROOT / PLAYERS))
def test_every_player_composes_with_every_provider(name, provider):
    if provider is not None and load_player(ROOT, name).model.script:
        assert "no model" in refusal(load_player, ROOT, name, provider)
        return
    player = load_player(ROOT, name, provider)
    reached = provider or player.model.provider
    assert player.model.provider == reached
    assert player.provider == (load_provider(ROOT, reached) if reached else None)
    assert player.model.id or player.model.script
