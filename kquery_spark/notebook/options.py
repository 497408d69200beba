"""Parses the line of ``%%kquery`` and ``%kquery``: options, a variable name, and for ``%kquery`` the SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast

from kquery_spark.errors import ConfigError

Engine = Literal["kquery", "spark", "local"]
When = Literal["auto", "always"]
ENGINES: tuple[Engine, ...] = ("kquery", "spark", "local")
WHENS: tuple[When, ...] = ("auto", "always")
DEFAULT_ROWS = 20
USAGE = (
    "%%kquery [NAME] [--explain | --verify] [--engine kquery|spark|local] [--when auto|always] [--rows N] "
    "[--context NAME], and the SQL below"
)


@dataclass(frozen=True)
class MagicOptions:
    """The options of a magic.

    name: the variable that receives the DataFrame. explain: show the explanation instead of rows. verify: compare with
    Spark instead. context: the variable with the ExecutionContext of ``--engine local``. rows: the number of rows to show.
    """

    name: str | None = None
    explain: bool = False
    verify: bool = False
    engine: Engine = "kquery"
    when: When = "auto"
    context: str | None = None
    rows: int = DEFAULT_ROWS

    def __post_init__(self) -> None:
        if self.explain and self.verify:
            raise ConfigError("pass --explain or --verify, not both")
        if self.context is not None and self.engine != "local":
            raise ConfigError("--context is for --engine local")
        if self.engine == "local" and self.verify:
            raise ConfigError("--verify compares with Spark, so it has no --engine local")


def parse_line(line: str, is_cell: bool) -> tuple[MagicOptions, str]:
    """Return the options of a magic's line, and the rest of the line, which is the SQL of a line magic.

    is_cell: a word that is not an option is the name of the variable, so nothing is left. Raises ConfigError, which lists
    the valid options.
    """
    options, text = MagicOptions(), line.strip()
    while text:
        word, _, rest = text.partition(" ")
        if word.startswith("--"):
            options, text = _with_option(options, word, rest.strip())
        elif not is_cell:
            break
        elif options.name is not None or not word.isidentifier():
            raise ConfigError(f"{word!r} is neither an option nor a name; {USAGE}")
        else:
            options, text = replace(options, name=word), rest.strip()
    return options, text


def _with_option(options: MagicOptions, word: str, rest: str) -> tuple[MagicOptions, str]:
    """Add one option. Return the options and the rest of the line."""
    option, equals, value = word.partition("=")
    name = option.removeprefix("--")
    if name in ("explain", "verify") and not equals:
        return (replace(options, explain=True) if name == "explain" else replace(options, verify=True)), rest
    change = _VALUES.get(name)
    if change is None:
        raise ConfigError(f"unknown option {word}; {USAGE}")
    if not equals:
        value, _, rest = rest.partition(" ")
    return change(options, value), rest.strip()


def _with_engine(options: MagicOptions, value: str) -> MagicOptions:
    return replace(options, engine=cast(Engine, _one_of("--engine", value, ENGINES)))


def _with_when(options: MagicOptions, value: str) -> MagicOptions:
    return replace(options, when=cast(When, _one_of("--when", value, WHENS)))


def _with_context(options: MagicOptions, value: str) -> MagicOptions:
    if not value.isidentifier():
        raise ConfigError(f"--context takes the name of a variable, not {value!r}")
    return replace(options, context=value)


def _with_rows(options: MagicOptions, value: str) -> MagicOptions:
    if not (value.isascii() and value.isdigit() and int(value)):
        raise ConfigError(f"--rows takes a whole number above 0, not {value!r}")
    return replace(options, rows=int(value))


_VALUES: dict[str, Callable[[MagicOptions, str], MagicOptions]] = {
    "engine": _with_engine,
    "when": _with_when,
    "context": _with_context,
    "rows": _with_rows,
}


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ConfigError(f"{option} is {', '.join(allowed[:-1])} or {allowed[-1]}, not {value!r}")
    return value
