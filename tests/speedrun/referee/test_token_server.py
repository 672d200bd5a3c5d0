import importlib.util
import os

import numpy as np
import pytest
from rowproof.speedrun.referee import token_server
from rowproof.speedrun.referee.sandbox import INSIDE
from rowproof.speedrun.referee.token_server import WINDOW_LIMIT, TokenServer

STREAM = np.arange(1000, dtype=np.uint16)


@pytest.fixture
def tokens():
    """The client, as a script in the sandbox imports it."""
    spec = importlib.util.spec_from_file_location("tokens", INSIDE / "tokens.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(monkeypatch):
    with TokenServer(STREAM) as server:
        # What the sandboxed process does by inheriting it.
        descriptor = os.dup(server.descriptor)
        server.hand_over()
        monkeypatch.setenv("SPEEDRUN_TOKENS_FD", str(descriptor))
        yield server
        os.close(descriptor)


def test_windows_come_in_any_order_and_are_counted(server, tokens):
    assert tokens.read(10, 5).tolist() == [10, 11, 12, 13, 14]
    assert tokens.read(0, 12).tolist() == list(range(12))
    assert tokens.read(999, 1).tolist() == [999]
    assert (server.tokens, server.distinct_tokens, server.largest_window, server.requests) == (18, 16, 12, 3)


def test_tokens_are_wide_integers(server, tokens):
    assert tokens.read(0, 3).dtype == np.int64


@pytest.mark.parametrize(
    "window", [(-1, 2), (999, 2), (1000, 1), (0, 0), (0, -1), (0, WINDOW_LIMIT + 1), (2**62, 2**62)]
)
def test_other_windows_are_refused_and_not_counted(server, tokens, window):
    with pytest.raises(ValueError, match="refuses"):
        tokens.read(*window)
    assert server.tokens == 0
    assert tokens.read(0, 1).tolist() == [0]


def test_a_run_that_has_used_up_its_requests_gets_nothing_more(server, tokens, monkeypatch):
    monkeypatch.setattr(token_server, "REQUEST_LIMIT", 2)
    tokens.read(0, 1)
    tokens.read(0, 1)
    with pytest.raises(ValueError, match="refuses"):
        tokens.read(0, 1)
    with pytest.raises((EOFError, OSError)):
        tokens.read(0, 1)
    assert server.tokens == 2


def test_without_a_server_there_is_no_data(tokens, monkeypatch):
    monkeypatch.delenv("SPEEDRUN_TOKENS_FD", raising=False)
    with pytest.raises(RuntimeError, match="during training alone"):
        tokens.read(0, 1)


def test_the_server_ends_while_a_run_still_holds_its_end(server):
    server.__exit__(None, None, None)
    assert not server._thread.is_alive()
