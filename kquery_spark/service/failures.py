"""Errors on their way over Flight: class and text as they were, whatever gRPC adds."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import flight

from kquery_spark import errors

_log = logging.getLogger("kquery_spark.service")
_MAX_TEXT_BYTES = 900
_MAX_LINE_CHARACTERS = 400
_CREDENTIALS = re.compile(r"://[^/\s@]{1,500}@")


@contextmanager
def as_flight_errors() -> Iterator[None]:
    """Errors become Flight's, with what a client of ours needs to raise them again; no traceback leaves the service."""
    try:
        yield
    except errors.KQueryError as error:
        raise _for_clients(error) from None
    except flight.FlightError:
        raise
    except RecursionError:
        raise _for_clients(errors.PlanError("the query is nested too deeply")) from None
    except MemoryError as error:
        _log.error("no memory for a query", exc_info=error)
        raise _for_clients(errors.KQueryError("the service has not enough memory for this query")) from None
    except Exception as error:
        _log.error("a request failed", exc_info=error)
        name = type(error).__name__
        raise _for_clients(errors.KQueryError(f"the service failed: {name}: {error}")) from None


def _for_clients(error: errors.KQueryError) -> flight.FlightServerError:
    text = _shortened(str(error))
    facts = {"class": type(error).__name__, "text": text, "error_class": getattr(error, "error_class", None)}
    return flight.FlightServerError(text, json.dumps(facts, ensure_ascii=False).encode())


def _shortened(text: str) -> str:
    """Without the credentials of a URL, at most ``_MAX_TEXT_BYTES``.

    gRPC drops calls whose error takes more than its 8 KiB of metadata.
    """
    text = _CREDENTIALS.sub("://***@", text[: 4 * _MAX_TEXT_BYTES])
    plain = "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text[:_MAX_TEXT_BYTES])
    lines = [
        line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]} ..."
        for line in plain.split("\n")
    ]
    data = "\n".join(lines).encode("utf-8", "replace")
    return data[:_MAX_TEXT_BYTES].decode("utf-8", "ignore")


@contextmanager
def raised_here(location: str) -> Iterator[None]:
    """Errors of Flight become the engine's that the service had, or say what is wrong with the service."""
    try:
        yield
    except flight.FlightUnauthenticatedError as error:
        raise errors.ConfigError(
            f"{location} does not let this client in; give it the service's token"
        ) from error
    except flight.FlightUnavailableError as error:
        raise errors.SourceError(f"no service answers at {location}: {error}") from error
    except flight.FlightError as error:
        raise _original(error, location) from error


def _original(error: flight.FlightError, location: str) -> errors.KQueryError:
    try:
        facts = json.loads(error.extra_info)
        name, text, error_class = facts["class"], str(facts["text"]), facts["error_class"]
    except (ValueError, KeyError, TypeError):
        return errors.KQueryError(f"the service at {location} failed: {error}")
    if error_class:
        return errors.ExecutionError(str(error_class), text.removeprefix(f"[{error_class}] "))
    kind = getattr(errors, str(name), None)
    if isinstance(kind, type) and issubclass(kind, errors.KQueryError) and kind is not errors.ExecutionError:
        return kind(text)
    return errors.KQueryError(text)
