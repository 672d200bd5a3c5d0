"""A project without audit salt in the environment, and runs that cost nothing."""

import pytest
from helpers import ROOT
from speedrun.commands.workbench import World


@pytest.fixture(autouse=True)
def project(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("ROWPROOF_AUDIT_SALT", raising=False)


@pytest.fixture
def world(monkeypatch):
    return World().install(monkeypatch)
