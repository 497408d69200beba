"""A griffe extension that turns the argument descriptions of a docstring into a list on the API page.

Docstrings describe arguments in a paragraph: ``fallback: what Spark runs. when: where the engine runs.`` Each argument
becomes one item. A sentence about errors or the result that follows the last argument becomes a paragraph of its own.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_AFTER_ARGUMENTS = re.compile(r"(?<=[.)]) (?=(?:Raises|Returns) )")


class ArgumentLists(griffe.Extension):
    """Rewrites the docstrings of functions and classes while the API page is built."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Rewrite the docstring of a function or method."""
        _rewrite(func, [parameter.name for parameter in func.parameters])

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Rewrite the docstring of a class, which describes its fields or the arguments of ``__init__``."""
        created = cls.members.get("__init__")
        parameters = created.parameters if isinstance(created, griffe.Function) else ()
        fields = [name for name, member in cls.members.items() if member.is_attribute or member.is_function]
        _rewrite(cls, [*fields, *(parameter.name for parameter in parameters)])


def _rewrite(owner: griffe.Object, names: list[str]) -> None:
    if owner.docstring is not None:
        owner.docstring.value = with_argument_lists(owner.docstring.value, names)


def with_argument_lists(docstring: str, names: list[str]) -> str:
    """Return the docstring with a list for each paragraph that describes several arguments, or begins with one."""
    if not names:
        return docstring
    name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    heading = re.compile(rf"(?:^|(?<=[.)`] ))((?:(?:{name}), )*(?:{name})): ")
    return "\n\n".join(_paragraph(paragraph, heading) for paragraph in docstring.split("\n\n"))


def _paragraph(paragraph: str, heading: re.Pattern[str]) -> str:
    text = " ".join(paragraph.split())
    first, *rest = heading.split(text)
    if not rest or paragraph.startswith(("-", " ", ">", "`")):
        return paragraph
    # What follows the description of the last argument does not belong to the list.
    rest[-1], *after = _AFTER_ARGUMENTS.split(rest[-1], maxsplit=1)
    items = []
    for names, description in zip(rest[::2], rest[1::2], strict=True):
        shown = ", ".join(f"**{name}**" for name in names.split(", "))
        items.append(f"- {shown}: {description.strip()}")
    return "\n\n".join(filter(None, (first.strip(), "\n".join(items), *after)))
