"""Classes of Python table functions as the driver sees them: copies that the user's own code does not notice."""

from __future__ import annotations

from typing import Any, ClassVar

from pyspark.cloudpickle import dumps

from kquery_spark.spark_bridge.python.table_state import keeps_state, load_handler


def test_a_copy_leaves_the_class_as_it_is() -> None:
    class Doubled:
        factor = 2

        def eval(self, value: int) -> Any:
            yield (self.factor * value,)

    copy = load_handler(dumps(Doubled))
    assert copy is not None
    assert copy is not Doubled
    assert not keeps_state(copy)
    Doubled.factor = 3
    assert copy.factor == 2


def test_no_base_hears_of_a_copy() -> None:
    class Registered:
        known: ClassVar[list[str]] = []

        def __init_subclass__(cls) -> None:
            cls.known.append(cls.__name__)

    class Function(Registered):
        def eval(self, value: int) -> Any:
            yield (value,)

    assert load_handler(dumps(Function)) is None
    assert Registered.known == ["Function"]


def test_no_metaclass_hears_of_a_copy() -> None:
    class Meta(type):
        pass

    class Function(metaclass=Meta):
        def eval(self, value: int) -> Any:
            yield (value,)

    assert load_handler(dumps(Function)) is None
