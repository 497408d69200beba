"""Finds event logs at a path and reads their events line by line, decompressed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kquery_spark.errors import SourceError
from kquery_spark.qualify.codecs import CODECS, Decoder, MalformedFile, plain
from kquery_spark.qualify.fields import MalformedEvent
from kquery_spark.qualify.lines import LineSplitter

Event = dict[str, Any]

_RUNNING = ".inprogress"
_COMPACTED = ".compact"
_ROLLED_DIRECTORY = "eventlog_v2_"
_PART = re.compile(r"events_(\d+)_")
_UNSUPPORTED = (".lzf", ".bz2", ".xz", ".zip", ".tar", ".tgz", ".7z")
# Unused events that are many or large: skipped by their first bytes, without parsing.
_UNREAD = tuple(
    f'{{"Event":"SparkListener{name}"'.encode()
    for name in (
        "TaskStart",
        "TaskGettingResult",
        "StageSubmitted",
        "StageExecutorMetrics",
        "EnvironmentUpdate",
    )
)


@dataclass(frozen=True)
class EventLog:
    """The log of one application: its files in the order in which Spark wrote them."""

    path: Path
    files: tuple[Path, ...]

    @property
    def is_running(self) -> bool:
        """Whether the application was running when the log was copied, or ended without closing it."""
        names = os.listdir(self.path) if self.path.is_dir() else [self.path.name]
        return any(name.endswith(_RUNNING) for name in names)

    @property
    def is_compacted(self) -> bool:
        """Whether the history server rewrote the log without the events of queries that had ended."""
        return any(file.name.endswith(_COMPACTED) for file in self.files)


def find_logs(path: str | Path) -> list[EventLog]:
    """Return the logs at a path: a file, the directory of a rolled log, or a directory that contains both.

    Raises SourceError if it finds no logs.
    """
    try:
        return _find_logs(Path(path))
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None


def _find_logs(path: Path) -> list[EventLog]:
    if not path.exists():
        raise SourceError(f"path does not exist: {path}")
    if path.is_file():
        return [EventLog(path, (path,))]
    if path.name.startswith(_ROLLED_DIRECTORY):
        return [_rolled(path)]
    logs = []
    for entry in sorted(path.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_file():
            logs.append(EventLog(entry, (entry,)))
        elif entry.name.startswith(_ROLLED_DIRECTORY):
            logs.append(_rolled(entry))
    if not logs:
        raise SourceError(f"no event logs in {path}")
    return logs


def _rolled(directory: Path) -> EventLog:
    parts = sorted(
        (int(match[1]), file.name.endswith(_COMPACTED), file)
        for file in directory.iterdir()
        if (match := _PART.match(file.name))
    )
    if not parts:
        raise SourceError(f"no event files in {directory}")
    # a compacted file replaces all files up to its number
    start = max((i for i, (_, is_compacted, _) in enumerate(parts) if is_compacted), default=0)
    return EventLog(directory, tuple(file for _, _, file in parts[start:]))


class EventReader:
    """Reads the events of a log one by one.

    Afterwards ``truncated`` is True if the log was cut off, ``malformed`` is the number of lines with JSON that is not an
    event or cannot be read, and ``too_long`` is the number of lines that are too long to read. These lines are skipped.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.truncated = False
        self.malformed = 0
        self.too_long = 0

    def __iter__(self) -> Iterator[Event]:
        for file in self._log.files:
            yield from self._events(file, is_last=file == self._log.files[-1])

    def _events(self, file: Path, is_last: bool) -> Iterator[Event]:
        number = 0
        # A line that is not JSON is an error, unless it is the last line of the log: then the log was cut off.
        not_json_problem: str | None = None
        for line in self._lines(file):
            if not_json_problem is not None:
                raise SourceError(not_json_problem)
            number += 1
            if not line.strip() or (line.startswith(_UNREAD) and line.endswith(b"}")):
                continue
            try:
                event = _event(line)
            except (json.JSONDecodeError, MalformedEvent) as error:
                problem = f"{file} is not a Spark event log: line {number}: {error}"
                if number == 1:
                    raise SourceError(problem) from None
                if isinstance(error, MalformedEvent):
                    self.malformed += 1
                else:
                    not_json_problem = problem
                continue
            yield event
        if not_json_problem is not None:
            if not is_last:
                raise SourceError(not_json_problem)
            self.truncated = True
        if not number:
            self.truncated = True

    def _lines(self, file: Path) -> Iterator[bytes]:
        decode = _decoder(file)
        splitter = LineSplitter()
        try:
            with open(file, "rb") as stream:
                yield from splitter.lines(decode(stream), os.fstat(stream.fileno()).st_size)
        except MalformedFile as error:
            raise SourceError(f"cannot decompress {file}: {error}") from None
        except OSError as error:
            raise SourceError(f"cannot read {file}: {error.strerror or error}") from None
        self.truncated = self.truncated or splitter.truncated
        self.too_long += splitter.too_long


def _event(line: bytes) -> Event:
    """Parse a line; raises JSONDecodeError if it is not JSON, and MalformedEvent if the JSON is not an event."""
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise MalformedEvent("the JSON nests too deeply") from None
    except ValueError as error:  # bytes that are not UTF-8, or a number of thousands of digits
        raise MalformedEvent(str(error)) from None
    if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
        raise MalformedEvent("the line is not an event")
    return event


def _decoder(file: Path) -> Decoder:
    name = file.name.removesuffix(_COMPACTED).removesuffix(_RUNNING)
    ending = os.path.splitext(name)[1].lower()
    if ending in _UNSUPPORTED:
        readable = ", ".join(CODECS)
        raise SourceError(f"cannot read {file}: {ending} is not supported; use {readable} or no compression")
    return CODECS.get(ending, plain)
