"""The employees of the book, in the engine of this process."""

from __future__ import annotations

from pathlib import Path

import pytest

import kquery_spark as kq

EMPLOYEES = """id,first_name,last_name,state,job_title,salary
1,Bill,Hopkins,CA,Manager,12000
2,Gregg,Langford,CO,Driver,10000
3,John,Travis,CO,"Manager, Software",11500
4,Von,Mill,,Defensive End,11500
"""
COLUMNS = "id int, first_name string, last_name string, state string, job_title string, salary double"


@pytest.fixture(scope="session")
def employee_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``employee.csv``."""
    path = tmp_path_factory.mktemp("employees") / "employee.csv"
    path.write_text(EMPLOYEES)
    return path


@pytest.fixture
def context(employee_csv: Path) -> kq.ExecutionContext:
    """A context with the table ``employee``."""
    made = kq.ExecutionContext()
    made.register_csv("employee", employee_csv, schema=COLUMNS)
    return made
