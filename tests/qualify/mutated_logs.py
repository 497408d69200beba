"""Mutates event logs of real sessions and qualifies each: a report or a SourceError, never another error.

``python -m tests.qualify.mutated_logs COUNT --seed N --seconds S`` prints the number of logs by outcome and each finding.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import math
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SourceError
from kquery_spark.qualify.html import render_html
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.text import render_text

LOGS = Path(__file__).parent / "logs"
SLOW_SECONDS = 30.0  # for a log of some KB, on a machine that does other things, too

ODD_VALUES: tuple[Any, ...] = (
    None, True, "", "x", 0, -1, 2**31, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, math.nan, math.inf, -math.inf, [], {}, [None],
    [[]], {"": None}, "1e999", "NaN", "²", chr(0xD800), "\x00\x1b[2J", "<script>", "&" * 50, "(" * 5000, "f(" * 200, "a" * 9000,
    "#1" * 3000, "SparkListenerTaskEnd", "Exchange", "... 5 more fields", "9" * 30,
)  # fmt: skip


@dataclass
class Findings:
    """The number of logs by outcome, and a description of each log that ended in an error that is not ours."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def campaign(count: int, seed: int, seconds: float, log_files: list[Path]) -> Findings:
    """Qualify ``count`` mutated logs, or those that fit into the time."""
    findings = Findings()
    originals = [file.read_bytes() for file in log_files]
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as directory:
        for number in range(count):
            if time.monotonic() > until:
                findings.outcomes["not run: out of time"] = count - number
                break
            rng = random.Random(f"{seed}/{number}")
            name, content = mutated(rng, rng.choice(originals))
            file = Path(directory) / name
            file.write_bytes(content)
            began = time.process_time()
            try:
                outcome = reported(file)
            except Exception:
                outcome = "another error"
                findings.faults.append(f"log {number} of seed {seed}:\n{traceback.format_exc(limit=-6)}")
            if time.process_time() - began > SLOW_SECONDS:
                findings.faults.append(
                    f"log {number} of seed {seed} took {time.process_time() - began:.1f} s"
                )
            findings.outcomes[outcome] += 1
            file.unlink()
    return findings


def reported(file: Path) -> str:
    """The outcome for one log; AssertionError for a report with numbers or characters that it must not have."""
    try:
        result = qualify_logs(file)
    except SourceError as error:
        assert str(error).encode()
        return "unreadable, with the reason"
    values = result.as_dict()
    json.dumps(values, allow_nan=False)
    for text in (render_text(result, 100), render_html(result, file.name)):
        assert text.encode()
        assert "<script" not in text or "<!DOCTYPE" not in text
        assert "\x1b" not in text
    for query in result.queries:
        assert query.task_seconds >= 0
        assert 0 <= query.wall.low <= query.wall.expected <= query.wall.high
        assert sum(node.task_seconds for node in query.nodes) <= query.task_seconds * 1.000001 + 1e-9
    notes = " ".join(result.applications[0].notes)
    if "left out" in notes:
        return "report, with the number of events left out"
    return "report, cut off" if "cut off" in notes else "report"


def mutated(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """The name and the bytes of a log with one to four changes of events, lines or bytes, in one of the codecs."""
    for _ in range(rng.randint(1, 4)):
        content = rng.choice((change_value, change_value, change_value, change_lines, change_bytes))(
            rng, content
        )
    name, pack = rng.choice(CODECS)
    packed = pack(content)
    if name and rng.random() < 0.4:
        packed = change_bytes(rng, packed)
    return f"app-1{name}", packed


def change_value(rng: random.Random, content: bytes) -> bytes:
    """One value of one event becomes another one, moves, goes, or nests."""
    lines = content.split(b"\n")
    number = rng.randrange(len(lines))
    try:
        event = json.loads(lines[number])
        places = list(_places(event))
        container, key = rng.choice(places)
        value = container[key]
        kind = rng.randrange(6)
        if kind == 0 and isinstance(container, dict):
            del container[key]
        elif kind == 1:
            container[key] = copy.deepcopy(rng.choice([c[k] for c, k in places]))
        elif kind == 2:
            deep: Any = value
            for _ in range(rng.choice((3, 50, 200))):
                deep = {"nodeName": "Project", "simpleString": "Project", "children": [deep]}
            container[key] = deep
        elif kind == 3 and isinstance(value, int):
            container[key] = rng.choice((value + 1, -value, value * 10**9, float(value), str(value)))
        elif kind == 4 and isinstance(value, str):
            at = rng.randrange(len(value) + 1)
            container[key] = value[:at] + str(rng.choice(ODD_VALUES)) + value[at:]
        else:
            container[key] = rng.choice(ODD_VALUES)
        lines[number] = json.dumps(event, separators=(",", ":")).encode()
    except (ValueError, IndexError, RecursionError, TypeError):
        return content  # a line that is not an event any more
    return b"\n".join(lines)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key below a value."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def change_lines(rng: random.Random, content: bytes) -> bytes:
    """Lines are lost, repeated, moved, shuffled, or cut off at the end."""
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 3:
        tail = lines[1:]
        rng.shuffle(tail)
        lines[1:] = tail
    elif kind == 4:
        return content[: rng.randrange(len(content) + 1)]
    else:
        lines += lines
    return b"\n".join(lines)


def change_bytes(rng: random.Random, content: bytes) -> bytes:
    """Single bytes change, or a range of bytes is lost or repeated."""
    data = bytearray(content)
    if not data:
        return content
    for _ in range(rng.choice((1, 1, 3))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.3:
        begin = rng.randrange(len(data))
        end = min(len(data), begin + rng.choice((1, 10, 1000)))
        data[begin:end] = data[begin:end] * rng.choice((0, 2))
    return bytes(data)


def lz4_blocks(data: bytes) -> bytes:
    """As lz4-java writes them, without checksums."""
    packed = pa.Codec("lz4_raw").compress(data, asbytes=True)
    sizes = len(packed).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return b"LZ4Block\x26" + sizes + bytes(4) + packed if data else b""


def snappy_blocks(data: bytes) -> bytes:
    """As snappy-java writes them."""
    packed = pa.Codec("snappy").compress(data, asbytes=True)
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + len(packed).to_bytes(4, "big") + packed


CODECS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("", bytes),
    ("", bytes),
    (".zstd", lambda data: pa.Codec("zstd").compress(data, asbytes=True)),
    (".gz", lambda data: gzip.compress(data, 1)),
    (".lz4", lz4_blocks),
    (".snappy", snappy_blocks),
)


def main() -> int:
    """Run the campaign and print what was found; 1 if a log ended in an error that is not ours."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, help="number of mutated logs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="longest run time (default: 600)")
    parser.add_argument("--logs", type=Path, default=LOGS, help="directory of logs that are not compressed")
    options = parser.parse_args()
    began = time.monotonic()
    files = sorted(file for file in options.logs.iterdir() if file.is_file())
    findings = campaign(options.count, options.seed, options.seconds, files)
    for outcome, number in sorted(findings.outcomes.items()):
        print(f"{number:9,}  {outcome}")
    print(*findings.faults[:20], sep="\n")
    print(f"{len(findings.faults)} findings, seed {options.seed}, {time.monotonic() - began:.0f} s")
    return 1 if findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())
