"""The differences between Scala 2.12 and 2.13, since Spark 3.5 is built for both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalaApi:
    """Names of Scala's library.

    seq: the class that ``Seq`` stands for in signatures. iterable: the class with ``mkString``. partial_function: the method
    of ``PartialFunction`` that makes one of a function. builder: the class of the second argument that ``map`` and
    ``flatMap`` take; None where they take none.
    """

    seq: str
    iterable: str
    partial_function: str
    builder: str | None


SCALA_2_12 = ScalaApi(
    "scala.collection.Seq",
    "scala.collection.TraversableOnce",
    "apply",
    "scala.collection.generic.CanBuildFrom",
)
SCALA_2_13 = ScalaApi(
    "scala.collection.immutable.Seq", "scala.collection.IterableOnceOps", "fromFunction", None
)


def scala_api(version: str) -> ScalaApi:
    """The library of a version, like ``2.12.18``."""
    return SCALA_2_12 if version.startswith("2.12.") else SCALA_2_13
