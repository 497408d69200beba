"""The differences between Scala 2.12 and 2.13, since Spark 3.5 is built for both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalaApi:
    """Names in the Scala library.

    seq: the class to which ``Seq`` refers in signatures. iterable: the class with ``mkString``. partial_function: the
    method of ``PartialFunction`` that converts a function. builder: the class of the second parameter of ``map`` and
    ``flatMap``; None if they have none.
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
    """The names for a version of the library, for example ``2.12.18``."""
    return SCALA_2_12 if version.startswith("2.12.") else SCALA_2_13
