"""A sample of the campaign of mutated event logs."""

from __future__ import annotations

from tests.qualify.mutated_logs import LOGS, campaign


def test_mutated_logs_end_in_a_report_or_a_reason() -> None:
    findings = campaign(300, seed=5, seconds=60.0, log_files=sorted(LOGS.iterdir()))
    assert not findings.faults
    outcomes = findings.outcomes
    assert outcomes["report"] > 10
    assert outcomes["report, with the number of events left out"] > 10
    assert outcomes["unreadable, with the reason"] > 10
