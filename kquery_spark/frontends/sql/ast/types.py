"""SQL data types as written; turning them into Arrow types is the analyzer's business."""

from __future__ import annotations

from dataclasses import dataclass

from kquery_spark.frontends.sql.ast.node import Node


@dataclass(frozen=True)
class TypeNode(Node):
    """Base of all data types."""


@dataclass(frozen=True)
class NamedType(TypeNode):
    """A plain type by its canonical name (``int``, ``decimal``, ``varchar`` ...) with its numbers.

    Aliases are gone (``integer`` -> ``int``, ``dec`` -> ``decimal``); decimals always have both numbers.
    """

    name: str
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True)
class ArrayType(TypeNode):
    """``array<element>``."""

    element: TypeNode


@dataclass(frozen=True)
class MapType(TypeNode):
    """``map<key, value>``."""

    key: TypeNode
    value: TypeNode


@dataclass(frozen=True)
class StructField(Node):
    """One field of a struct; comments are dropped."""

    name: str
    type: TypeNode
    nullable: bool = True


@dataclass(frozen=True)
class StructType(TypeNode):
    """``struct<a: int, b: string>``."""

    fields: tuple[StructField, ...]


@dataclass(frozen=True)
class IntervalType(TypeNode):
    """``interval day to second``, ``interval year`` ...: units in upper case, equal when there is one."""

    start: str
    end: str
