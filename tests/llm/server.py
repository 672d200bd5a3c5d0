"""An endpoint of the OpenAI chat protocol on this machine, and a clock that a test can read."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rowproof.llm.client import Clock

KEY = "sk-a-key-that-nobody-may-see"
ACCESS = "an-access-secret-that-nobody-may-see"
ENVIRONMENT = {"MODEL_KEY": KEY, "ACCESS_SECRET": ACCESS}
USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 100},
    "completion_tokens_details": {"reasoning_tokens": 10},
}


class Provider:
    """What a provider file says."""

    base_url_variable = None
    api_key_variable = "MODEL_KEY"
    api_key_default = None

    def __init__(self, base_url, **changes):
        self.base_url = base_url
        self.header_variables = {"X-Access": "ACCESS_SECRET"}
        vars(self).update(changes)

    def missing_variables(self, environment):
        needed = [self.api_key_variable, *self.header_variables.values()]
        return [name for name in needed if not environment.get(name)]


class FakeClock(Clock):
    """Time that passes only in sleep."""

    def __init__(self):
        self.now_s = 1000.0
        self.slept = []

    def now(self):
        return self.now_s

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now_s += seconds


def completion(text, finish_reason="stop", usage=USAGE, **message):
    """The body of an answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "served-1", "choices": [choice]}
    return body if usage is None else body | {"usage": usage}


class Dribble(dict):
    """A body that comes byte by byte, ten in a second."""


class Server:
    """Answers from a script: each entry is a body, ``(status, body)``, ``(status, body, headers)`` or seconds to wait
    before nothing. A function of the request's body in place of the script answers everything."""

    def __init__(self, script):
        self.script = script if callable(script) else list(script)
        self.requests = []
        self.headers = []

    def answer(self, body):
        answer = self.script(body) if callable(self.script) else self.script.pop(0)
        return answer if isinstance(answer, tuple) else (200, answer)


@contextmanager
def serving(script):
    """A running server; yields it with ``base_url`` set."""
    server = Server(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.requests.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, answer, *headers = server.answer(body)
            if isinstance(answer, float):
                time.sleep(answer)
                return
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, value in (headers[0] if headers else {}).items():
                self.send_header(name, value)
            self.end_headers()
            if not isinstance(answer, Dribble):
                self.wfile.write(data)
                return
            with suppress(OSError):
                for byte in data:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.1)

        def log_message(self, *arguments):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.base_url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
