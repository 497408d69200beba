"""Errors on their way over Flight: class and text as they were, whatever gRPC adds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import flight

from kquery_spark import errors


@contextmanager
def told_to_clients() -> Iterator[None]:
    """Errors of the engine become Flight's, with what a client of ours needs to raise them again."""
    try:
        yield
    except errors.KQueryError as error:
        facts = {
            "class": type(error).__name__,
            "text": str(error),
            "error_class": getattr(error, "error_class", None),
        }
        raise flight.FlightServerError(str(error), json.dumps(facts).encode()) from error


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
    if isinstance(kind, type) and issubclass(kind, errors.KQueryError):
        return kind(text)
    return errors.KQueryError(text)
