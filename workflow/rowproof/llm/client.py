"""A client of the OpenAI chat protocol: one retry policy for every provider, limits, and errors of one type.

The key comes from the environment variable that a provider names. It is kept in the client alone and taken out of
whatever the provider sends back, so that no record, log or error message can hold it.
"""

import base64
import json
import math
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple, NoReturn, Protocol

from rowproof.errors import ConfigError
from rowproof.llm.calls import CallError, ErrorKind, Message, Picture, Reply, Request, Usage, well_formed
from rowproof.llm.limits import Limits

NO_KEY = "EMPTY"
# Anything shorter would be found in texts that have nothing to do with it.
_MIN_SECRET = 8
_RAW_LENGTH = 10_000
_MESSAGE_LENGTH = 300
_FILTER_CODES = ("content_filter", "content_policy")


class Clock:
    """The clock of the machine; tests put another one in its place."""

    def now(self) -> float:
        """Seconds since some instant; never runs backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Policy(NamedTuple):
    """How long a request may take and how often it is tried.

    Attributes:
        tries: at most.
        deadline_s: no further try begins after that, counted from the first one.
        request_s: of one try.
        connect_s: of one connection.
        max_delay_s: between tries, whatever the provider asks for.
    """

    tries: int = 5
    deadline_s: float = 180.0
    request_s: float = 120.0
    connect_s: float = 5.0
    max_delay_s: float = 60.0


DEFAULT_POLICY = Policy()


class _Bucket:
    """A token bucket that holds one minute's worth; it may be overdrawn once, and then must fill up again."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._capacity = float(per_minute)
        self._level = self._capacity
        self._clock = clock
        self._filled_s = clock.now()
        self._lock = threading.Lock()

    def wait(self, taken: int) -> None:
        """Wait until there is at least one, and take as many as said."""
        while True:
            with self._lock:
                self._fill()
                if self._level >= 1:
                    self._level -= taken
                    return
                lacking_s = (1 - self._level) * 60 / self._capacity
            self._clock.sleep(lacking_s)

    def spend(self, amount: int) -> None:
        with self._lock:
            self._fill()
            self._level -= amount

    def _fill(self) -> None:
        now_s = self._clock.now()
        gained = (now_s - self._filled_s) * self._capacity / 60
        # Rounding must not leave a waiting caller an atom short for ever.
        self._level = min(self._capacity, round(self._level + gained, 6))
        self._filled_s = now_s


class Limiter:
    """Keeps the limits of one provider; share it between the clients that reach it."""

    def __init__(self, limits: Limits | None = None, clock: Clock | None = None) -> None:
        """Start with a full minute's worth."""
        limits, clock = limits or Limits(), clock or Clock()
        requests, tokens, concurrent = limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent_requests
        self._requests = None if requests is None else _Bucket(requests, clock)
        self._tokens = None if tokens is None else _Bucket(tokens, clock)
        self._slots = nullcontext() if concurrent is None else threading.BoundedSemaphore(concurrent)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until a request may be sent, and count it."""
        with self._slots:
            if self._tokens is not None:
                self._tokens.wait(0)
            if self._requests is not None:
                self._requests.wait(1)
            yield

    def spend(self, usage: Usage | None) -> None:
        """Count the tokens of an answer: how many it takes is known only then."""
        if self._tokens is not None and usage is not None:
            self._tokens.spend(usage.input_tokens + usage.output_tokens)


class Reachable(Protocol):
    """A provider as configuration files describe it: names of environment variables, never their values."""

    base_url: str | None
    base_url_variable: str | None
    api_key_variable: str
    api_key_default: str | None
    header_variables: dict[str, str]

    def missing_variables(self, environment: Mapping[str, str]) -> list[str]:
        """Variables that are needed and unset."""


class _Failed(Exception):
    """A try without an answer; ``cause`` is set if another one may help."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        cause: str | None = None,
        status: int | None = None,
        usage: Usage | None = None,
        raw: str | None = None,
        delay_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.cause, self.status, self.usage, self.raw = kind, cause, status, usage, raw
        self.delay_s = delay_s


class Client:
    """Sends requests to one provider."""

    def __init__(
        self,
        provider: Reachable,
        environment: Mapping[str, str],
        *,
        policy: Policy = DEFAULT_POLICY,
        limiter: Limiter | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Read address, key and access headers from ``environment``.

        Raises:
            ConfigError: a variable is unset, or a secret in one is too short to be one.
        """
        missing = provider.missing_variables(environment)
        if missing:
            raise ConfigError(f"these environment variables must be set to reach the model: {', '.join(missing)}")
        key = environment.get(provider.api_key_variable) or provider.api_key_default or NO_KEY
        headers = {header: environment[name] for header, name in provider.header_variables.items()}
        secrets = {provider.api_key_variable: key} | {n: environment[n] for n in provider.header_variables.values()}
        for name, value in secrets.items():
            if value != NO_KEY and not (len(value) >= _MIN_SECRET and value.isascii() and value.isprintable()):
                raise ConfigError(f"{name}: must hold {_MIN_SECRET} or more plain characters or {NO_KEY} (not shown)")
        self._secrets = sorted((value for value in secrets.values() if value != NO_KEY), key=len, reverse=True)
        self._policy = policy
        self._clock = clock or Clock()
        self._limiter = limiter or Limiter(clock=self._clock)
        self._openai = _connect(provider, environment, key, headers)

    def ask(self, request: Request) -> Reply:
        """Send a request until there is an answer, no hope, or no time.

        Raises:
            CallError: there is no answer.
        """
        retries: dict[str, int] = {}
        deadline_s = math.inf
        failed: _Failed | None = None
        seconds = 0.0
        while True:
            with self._limiter.slot():
                began_s = self._clock.now()
                if failed is None:
                    deadline_s = began_s + self._policy.deadline_s
                elif began_s >= deadline_s:
                    # The limits of the provider took what time was left.
                    self._give_up(failed, seconds, retries)
                else:
                    retries[failed.cause] = retries.get(failed.cause, 0) + 1
                try:
                    reply = self._try(request, min(self._policy.request_s, deadline_s - began_s))
                    failed = None
                except _Failed as error:
                    failed = error
                ended_s = self._clock.now()
            seconds = round(ended_s - began_s, 3)
            if failed is None:
                self._limiter.spend(reply.usage)
                return reply._replace(seconds=seconds, retries=retries)
            self._limiter.spend(failed.usage)
            number = sum(retries.values())
            delay_s = failed.delay_s if failed.delay_s is not None else 2.0**number
            delay_s = min(delay_s, self._policy.max_delay_s)
            if failed.cause is None or number + 1 >= self._policy.tries or ended_s + delay_s >= deadline_s:
                self._give_up(failed, seconds, retries)
            self._clock.sleep(delay_s)

    def _give_up(self, failed: _Failed, seconds: float, retries: dict[str, int]) -> NoReturn:
        after = f" after {1 + sum(retries.values())} tries" if retries else ""
        message = self._without_secrets(f"{failed.kind}{after}: {failed}")
        raise CallError(
            failed.kind,
            message,
            status=failed.status,
            usage=failed.usage,
            seconds=seconds,
            retries=retries,
            raw=failed.raw,
        )

    def _try(self, request: Request, timeout_s: float) -> Reply:
        import httpx2
        import openai

        timeout = httpx2.Timeout(timeout_s, connect=min(self._policy.connect_s, timeout_s))
        try:
            response = self._openai.chat.completions.with_raw_response.create(
                model=request.model,
                messages=[_wire(message) for message in request.messages],
                timeout=timeout,
                **request.parameters,
            )
            body = response.http_response.text
        except openai.APITimeoutError:
            failed = _Failed("timed_out", "no answer in time", cause="timed_out")
        except openai.APIStatusError as error:
            failed = self._refused(error.status_code, error.response.headers.get("retry-after"), error.response.text)
        except openai.APIConnectionError as error:
            # Not the text of the cause: it may name an address that is nobody's business.
            failed = _Failed("server_error", f"no connection ({type(error.__cause__).__name__})", cause="connection")
        except httpx2.HTTPError as error:
            failed = _Failed("server_error", f"the answer broke off ({type(error).__name__})", cause="connection")
        else:
            return _read(self._without_secrets(body))
        # Outside of the handlers: the errors of the client hold its headers.
        raise failed

    def _refused(self, status: int, retry_after: str | None, body: str) -> _Failed:
        raw = self._without_secrets(body)[:_RAW_LENGTH]
        message = f"HTTP {status}: {' '.join(raw.split())[:_MESSAGE_LENGTH] or 'no explanation'}"
        if status == 429:
            return _Failed(
                "rate_limited", message, cause="rate_limited", status=status, raw=raw, delay_s=_seconds(retry_after)
            )
        if status >= 500:
            return _Failed(
                "server_error", message, cause="server_error", status=status, raw=raw, delay_s=_seconds(retry_after)
            )
        if status == 408:
            return _Failed("timed_out", message, cause="timed_out", status=status, raw=raw)
        if status in (401, 403):
            return _Failed("authentication", message, status=status, raw=raw)
        kind: ErrorKind = "content_filter" if any(code in raw for code in _FILTER_CODES) else "bad_request"
        return _Failed(kind, message, status=status, raw=raw)

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "(removed)").replace(json.dumps(secret)[1:-1], "(removed)")
        return text


def _connect(provider: Reachable, environment: Mapping[str, str], key: str, headers: Mapping[str, str]) -> Any:
    # Loading these takes most of a second, which commands that call no model need not wait for.
    import httpx2
    import openai

    base_url = provider.base_url or environment[provider.base_url_variable or ""]
    return openai.OpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        # Headers of the library's own options are written to its log; these are not.
        http_client=httpx2.Client(
            headers=dict(headers),
            follow_redirects=False,
            verify=_certificates(),
            event_hooks={"response": [_limit_body]},
        ),
        # Otherwise taken from variables that the provider does not name.
        default_headers={"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()},
    )


def _limit_body(response: Any) -> None:
    """Limit the time of a whole body: the limit of the library begins anew with every part that comes."""
    import httpx2

    parts = response.stream
    end_s = time.monotonic() + response.request.extensions["timeout"]["read"]

    class Body(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for part in parts:
                if time.monotonic() > end_s:
                    raise httpx2.ReadTimeout("the answer takes too long", request=response.request)
                yield part

        def close(self) -> None:
            parts.close()

    response.stream = Body()


@cache
def _certificates() -> ssl.SSLContext:
    """Reading them takes long, and all clients trust the same ones."""
    import httpx2

    return httpx2.create_ssl_context()


def _wire(message: Message) -> dict[str, Any]:
    if not message.pictures:
        return {"role": message.role, "content": message.text}
    parts = []
    for part in message.parts:
        if isinstance(part, Picture):
            url = f"data:image/png;base64,{base64.b64encode(part.data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            parts.append({"type": "text", "text": part})
    return {"role": message.role, "content": parts}


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of a Retry-After header; None if there is none, or a date, which needs the same clock on both sides."""
    try:
        value = float(retry_after or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


# ---- answers ---------------------------------------------------------------------------------------------------


def _read(body: str) -> Reply:
    raw = well_formed(body)[:_RAW_LENGTH]
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        message = choice["message"]
        if not isinstance(message, dict):
            raise TypeError
    except (ValueError, TypeError, LookupError, RecursionError):
        raise _Failed("server_error", "the answer must be JSON with a message in its choices", raw=raw) from None
    usage = _usage(data.get("usage"))
    finish_reason = _text(choice.get("finish_reason"))
    refusal = _text(message.get("refusal"))
    text = _content(message.get("content"))
    if finish_reason == "content_filter" or (refusal and not text):
        raise _Failed("content_filter", refusal or "the answer was filtered", usage=usage, raw=refusal or raw)
    arguments = _tool_arguments(message.get("tool_calls"))
    return Reply(
        text=text,
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")) or None,
        tool_arguments=arguments,
        finish_reason=finish_reason,
        usage=usage,
        served_model=_text(data.get("model")),
        raw=None if text.strip() or arguments else raw,
    )


def _text(value: Any) -> str | None:
    return well_formed(value) if isinstance(value, str) else None


def _content(value: Any) -> str:
    if isinstance(value, list):
        return "".join(_text(part.get("text")) or "" for part in value if isinstance(part, dict))
    return _text(value) or ""


def _tool_arguments(calls: Any) -> tuple[str, ...]:
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    texts = [_text(function.get("arguments")) for function in functions if isinstance(function, dict)]
    return tuple(text for text in texts if text is not None)


def _usage(value: Any) -> Usage | None:
    """The counts; None without them. What is no count is not made one."""
    if not isinstance(value, dict):
        return None
    given, made = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    if given is None and made is None:
        return None
    cached = _detail(value.get("prompt_tokens_details"), "cached_tokens")
    reasoning = _detail(value.get("completion_tokens_details"), "reasoning_tokens")
    # Parts cannot be more than the whole.
    return Usage(given or 0, made or 0, min(cached, given or 0), min(reasoning, made or 0))


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _detail(value: Any, key: str) -> int:
    return _count(value.get(key)) or 0 if isinstance(value, dict) else 0
