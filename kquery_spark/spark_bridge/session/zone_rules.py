"""Reads the rules of time zones from Spark's JVM, whose time zone database may differ from that of this machine.

Since release 2022b, the database assigns the history of a neighboring zone before 1970 to dozens of zones, for example to
Europe/Amsterdam, but Linux distributions retain their own history.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.zones import (
    END,
    ZoneTable,
    adopt_tables,
    fixed_offset,
    offset_seconds,
    table_of_this_machine,
)
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS

_EPOCH = dt.datetime(1970, 1, 1)
_LONG_AGO = -100_000_000_000  # 1200 BC, before all transitions of time zones
_SAMPLES = (2_145_916_800, 4_102_444_800, 13_569_465_600)  # the beginnings of 2038, 2100 and 2400
# java.time prints a transition as the wall-clock time at which it happens, the offset before it, and the offset after it
_CHANGE = re.compile(
    r"Transition\[(?:Gap|Overlap) at (\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(Z|[+-][\d:]+) to (Z|[+-][\d:]+)\]"
)

_followed: set[str] = set()


def follow_zone(jvm: Jvm, name: str) -> None:
    """Make the engine use the JVM's rules of a time zone; the two databases are compared once per process."""
    if name in _followed:
        return
    try:
        is_region = fixed_offset(name) is None
    except Unsupported:  # expressions that need the zone are declined later
        is_region = False
    if is_region:
        _adopt_jvm_rules(jvm, name)
    _followed.add(name)


def _adopt_jvm_rules(jvm: Jvm, name: str) -> None:
    try:
        rules = jvm.call("java.time.ZoneId", "of", name).getRules()
    except SPARK_ERRORS:
        raise Unsupported(f"Spark's JVM does not know the time zone {name}") from None
    machine, known = table_of_this_machine(name), _listed_transitions(jvm, rules, name)
    last = known.moments[-1] if known.moments else _LONG_AGO
    is_same_later = all(
        _next_transition(jvm, rules, moment) == machine.next_after(moment) for moment in (last, *_SAMPLES)
    )
    if is_same_later and machine.until(last) == known:
        return
    adopt_tables(known.followed_by(machine) if is_same_later else _all_transitions(jvm, rules, known))


def _listed_transitions(jvm: Jvm, rules: Any, name: str) -> ZoneTable:
    """The transitions that the JVM lists explicitly; later ones follow recurring rules."""
    first = rules.getOffset(jvm.call("java.time.Instant", "ofEpochSecond", _LONG_AGO)).getTotalSeconds()
    moments, offsets = [], [first]
    for wall, before, after in _CHANGE.findall(str(rules.getTransitions().toString())):
        since_epoch = int((dt.datetime.fromisoformat(wall) - _EPOCH).total_seconds())
        moments.append(since_epoch - _seconds(before))
        offsets.append(_seconds(after))
    return ZoneTable(name, tuple(moments), tuple(offsets))


def _seconds(offset: str) -> int:
    seconds = 0 if offset == "Z" else offset_seconds(offset)
    assert seconds is not None
    return seconds


def _next_transition(jvm: Jvm, rules: Any, moment: int) -> tuple[int, int] | None:
    """The first transition after a moment, and the new offset; None if there is none before 2500."""
    change = rules.nextTransition(jvm.call("java.time.Instant", "ofEpochSecond", moment))
    if change is None or change.toEpochSecond() >= END:
        return None
    return change.toEpochSecond(), change.getOffsetAfter().getTotalSeconds()


def _all_transitions(jvm: Jvm, rules: Any, known: ZoneTable) -> ZoneTable:
    """All transitions until 2500, which are read one by one."""
    moments, offsets = list(known.moments), list(known.offsets)
    change = _next_transition(jvm, rules, moments[-1] if moments else _LONG_AGO)
    while change is not None:
        moments.append(change[0])
        offsets.append(change[1])
        change = _next_transition(jvm, rules, change[0])
    return ZoneTable(known.name, tuple(moments), tuple(offsets))
