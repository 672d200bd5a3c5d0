import pytest
from gptnt.statics.workbench import small_data


@pytest.fixture
def small(monkeypatch):
    """One row per module."""
    small_data(monkeypatch)
