"""Carries the engine's errors over Flight, so that the client raises the same class with the same message."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import flight

from kquery_spark import errors

_log = logging.getLogger("kquery_spark.service")
_MAX_MESSAGE_BYTES = 900
_MAX_LINE_CHARACTERS = 400
_CREDENTIALS = re.compile(r"://[^/\s@]{1,500}@")


@contextmanager
def as_flight_errors() -> Iterator[None]:
    """Raise errors as Flight errors with the class and message, which ``as_engine_errors`` restores in the client.

    Tracebacks stay in the log of the service.
    """
    try:
        yield
    except errors.KQueryError as error:
        raise _for_clients(error) from None
    except flight.FlightError:
        raise
    except RecursionError:
        raise _for_clients(errors.PlanError("the query is nested too deeply")) from None
    except MemoryError as error:
        _log.error("a query ran out of memory", exc_info=error)
        raise _for_clients(
            errors.KQueryError("the service does not have enough memory for this query")
        ) from None
    except Exception as error:
        _log.error("a request failed", exc_info=error)
        name = type(error).__name__
        raise _for_clients(errors.KQueryError(f"the service failed: {name}: {error}")) from None


def _for_clients(error: errors.KQueryError) -> flight.FlightServerError:
    message = _safe_message(str(error))
    facts = {
        "class": type(error).__name__,
        "text": message,
        "error_class": getattr(error, "error_class", None),
    }
    return flight.FlightServerError(message, json.dumps(facts, ensure_ascii=False).encode())


def _safe_message(message: str) -> str:
    """Remove the credentials of URLs and control characters, and cut the message to ``_MAX_MESSAGE_BYTES``.

    gRPC drops calls whose error takes more than its 8 KiB of metadata.
    """
    message = _CREDENTIALS.sub("://***@", message[: 4 * _MAX_MESSAGE_BYTES])
    plain = "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in message[:_MAX_MESSAGE_BYTES])
    lines = [
        line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]} ..."
        for line in plain.split("\n")
    ]
    data = "\n".join(lines).encode("utf-8", "replace")
    return data[:_MAX_MESSAGE_BYTES].decode("utf-8", "ignore")


@contextmanager
def as_engine_errors(location: str) -> Iterator[None]:
    """Raise Flight errors as the engine's error that the service raised, or as one that says why the service failed."""
    try:
        yield
    except flight.FlightUnauthenticatedError as error:
        raise errors.ConfigError(f"{location} rejected this client; pass the service's token") from error
    except flight.FlightUnavailableError as error:
        raise errors.SourceError(f"no service answers at {location}: {error}") from error
    except flight.FlightError as error:
        raise _original_error(error, location) from error


def _original_error(error: flight.FlightError, location: str) -> errors.KQueryError:
    try:
        facts = json.loads(error.extra_info)
        name, message, error_class = facts["class"], str(facts["text"]), facts["error_class"]
    except (ValueError, KeyError, TypeError):
        return errors.KQueryError(f"the service at {location} failed: {error}")
    if error_class:
        return errors.ExecutionError(str(error_class), message.removeprefix(f"[{error_class}] "))
    kind = getattr(errors, str(name), None)
    if isinstance(kind, type) and issubclass(kind, errors.KQueryError) and kind is not errors.ExecutionError:
        return kind(message)
    return errors.KQueryError(message)
