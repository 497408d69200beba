"""Reads many JVM values with few py4j calls.

A py4j call takes 0.14 ms. If its result is longer than the socket's buffer of 8 KiB, it takes 44 ms, because Nagle's
algorithm waits for a delayed ACK. So to read a plan node by node, or all of its JSON at once, would take longer than many
queries. There are two remedies:

- Scala functions run inside the JVM (``functions.py``), so that one call reads a fact of many objects.
- Long strings are read in slices that fit into the buffer.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.jvm.functions import JvmFunctions, cached_by_arguments

T = TypeVar("T")
_MAX_REMEMBERED = 1000
_SLICE_CODE_UNITS = 7000
_SEPARATOR = "\x1e"
_SEQUENCE = "scala.collection.Seq"  # the supertype of mutable and immutable sequences in each version
_ROW = "org.apache.spark.sql.catalyst.expressions.SpecializedGetters"


class Jvm(JvmFunctions):
    """Reads values of one JVM, and caches results that are derived from equal JVM objects.

    gateway: PySpark's py4j gateway (``SparkContext._gateway``).
    """

    def __init__(self, gateway: Any) -> None:
        super().__init__(gateway)
        self._types: dict[str, Any] = {}
        self._object_numbers: Any = None
        self._values: dict[tuple[int, str], Any] = {}
        self._counter = itertools.count()

    def java_list(self, strings: Sequence[str]) -> Any:
        """A ``java.util.List`` of strings. It is cached by value, so callers must not change it."""
        return self.cached(("list", *strings), lambda: self.list_of_objects(strings))

    def list_of_objects(self, objects: Iterable[Any]) -> Any:
        """Create a ``java.util.ArrayList`` of JVM objects or strings. It is not cached, so it does not keep them alive."""
        array_list = self.new("java.util.ArrayList")
        for item in objects:
            array_list.add(item)
        return array_list

    def list_of_strings(self, strings: Sequence[str]) -> Any:
        """Create a ``java.util.ArrayList`` of strings with two py4j calls, which the caller may change; None if impossible.

        The strings are joined by a control character and split by Java's tokenizer. So none of them may contain this
        character, and none may be empty, because the tokenizer skips empty strings.
        """
        if not all(strings) or any(_SEPARATOR in string for string in strings):
            return None
        tokens = self.new("java.util.StringTokenizer", _SEPARATOR.join(strings), _SEPARATOR)
        return self.call("java.util.Collections", "list", tokens)

    def java_dict(self, strings: Mapping[str, str]) -> Any:
        """A ``java.util.Map`` of strings. It is cached by value, so callers must not change it."""

        def make() -> Any:
            hash_map = self.new("java.util.HashMap")
            for name, text in strings.items():
                hash_map.put(name, text)
            return hash_map

        return self.cached(("dict", *strings.items()), make)

    def is_local(self) -> bool:
        """Return whether Spark's tasks run in this JVM."""
        local: bool = self.static("org.apache.spark.SparkContext", "getOrCreate").isLocal()
        return local

    def time_zone(self) -> str:
        """The name of this JVM's default time zone, which may differ from the session's."""
        return str(self.call("java.util.TimeZone", "getDefault").getID())

    def data_type(self, spark: Any) -> Any:
        """The DataType object for a ``DataType.jsonValue``; recent ones are cached."""
        text = json.dumps(spark)
        data_type = self._types.get(text)
        if data_type is None:
            if len(self._types) >= _MAX_REMEMBERED:
                self._types.clear()
            data_type = self._types[text] = self.call("org.apache.spark.sql.types.DataType", "fromJson", text)
        return data_type

    def row_value(self, position: int, spark: Any) -> Any:
        """``row => row.get(position, dataType)`` of an InternalRow as a Scala function; spark: as for ``data_type``."""

        def make() -> Any:
            get = self.handle(_ROW, "get", "int", "org.apache.spark.sql.types.DataType")
            return self.function(self.bind(self.bind(get, 2, self.data_type(spark)), 1, position))

        return self.cached(("value", position, json.dumps(spark)), make)

    def column_strings(self, rows: Any, position: int, spark: Any) -> list[str | None]:
        """``toString`` of one column of InternalRows in an ``IndexedSeq``, None for NULL; spark: as for ``data_type``."""
        strings = self.map_strings(rows, self.row_value(position, spark))
        if "null" not in strings:  # NULL is printed as "null", but so is the string "null"
            return [*strings]
        nulls = self.map_strings(rows, self.row_is_null(position))
        return [None if null == "true" else text for null, text in zip(nulls, strings, strict=True)]

    @cached_by_arguments
    def row_is_null(self, position: int) -> Any:
        """``row => row.isNullAt(position)`` of an InternalRow as a Scala function."""
        return self.function(self.bind(self.handle(_ROW, "isNullAt", "int"), 1, position))

    def cached_value(self, key: Any, variant: str, make: Callable[[], T]) -> T:
        """The value of ``make``, cached for JVM objects that equal ``key``; the JVM's map has weak keys."""
        if self._object_numbers is None or len(self._values) > _MAX_REMEMBERED:
            self._values.clear()
            self._object_numbers = self._java.util.Collections.synchronizedMap(self._java.util.WeakHashMap())
        object_number: int | None = self._object_numbers.get(key)
        if object_number is None:
            object_number = next(self._counter)
            self._object_numbers.put(key, object_number)
        value = self._values.get((object_number, variant))
        if value is None:
            value = self._values[object_number, variant] = make()
        result: T = value
        return result

    @cached_property
    def spark_version(self) -> str:
        """Spark's version, for example ``4.3.0``."""
        return str(self._gateway.jvm.org.apache.spark.package.SPARK_VERSION())

    def map_sequence(self, sequence: Any, function: Any) -> Any:
        """``sequence.map(function)`` of a Scala sequence."""
        return sequence.map(function, *self._builders())

    def flat_map_sequence(self, sequence: Any, function: Any) -> Any:
        """``sequence.flatMap(function)`` of a Scala sequence."""
        return sequence.flatMap(function, *self._builders())

    def sequence(self, items: Sequence[Any]) -> Any:
        """A Scala list of JVM objects."""
        sequence = self.empty()
        for item in reversed(items):
            sequence = getattr(sequence, "$colon$colon")(item)
        return sequence

    def is_same(self, left: Any, right: Any) -> bool:
        """Return whether two references are to the same JVM object, as opposed to equal objects."""
        # py4j has no operator for reference equality, and ``compareAndSet`` compares references.
        reference = self.new("java.util.concurrent.atomic.AtomicReference", left)
        return bool(reference.compareAndSet(right, right))

    def text(self, owner: Any, cls: str, method: str) -> str:
        """The string that ``owner.method()`` returns; a long one is read in slices that fit into the socket's buffer."""
        return self._read(owner, (cls, method), lambda: self.handle(cls, method))

    def list_of(self, array: Any) -> Any:
        """A Scala list of the objects of a Java array."""
        return self._gateway.jvm.scala.Predef.genericWrapArray(array).toList()

    def strings(self, sequence: Any) -> list[str]:
        """``toString`` of each element of a Scala sequence, in as few calls as their length allows."""
        return self.strings_of_steps("elements", sequence)

    def map_strings(self, sequence: Any, function: Any) -> list[str]:
        """``toString`` of each element of ``sequence.map(function)``.

        The JVM function that does this is cached by ``function``, so pass a cached function; for others, the cache grows.
        """
        return self.strings_of_steps(
            f"map {function._get_object_id()}", sequence, self.map_step("map", function)
        )

    def strings_of_steps(self, key: str, owner: Any, *steps: tuple[Any, ...]) -> list[str]:
        """``toString`` of each element of the Scala sequence that is the result of ``owner.step1(...).step2(...)``.

        key, steps: as for the method ``steps``; without steps, ``owner`` is the sequence itself. Raises Unsupported if a
        string contains the character that separates them.
        """
        text = self._read(owner, ("strings", key), lambda: self._count_and_join(steps))
        # A pair prints as ``(2,a<separator>b)``. The number distinguishes no element from one empty string, and reveals
        # strings that contain the separator.
        length, _, joined = text[1:-1].partition(",")
        if length == "0":
            return []
        parts = joined.split(_SEPARATOR)
        if len(parts) != int(length):
            raise Unsupported("a value in Spark's plan contains a control character")
        return parts

    def _count_and_join(self, steps: Sequence[tuple[Any, ...]]) -> Any:
        """Return a method handle that applies the steps, and then ``s => (s.length, s.mkString(separator)).toString``."""
        joined = self._step(self.scala.iterable, "mkString", "java.lang.String", _SEPARATOR)
        counted = self.tuple_handle(self.handle(_SEQUENCE, "length"), joined)
        counted = self.then(counted, self.handle("java.lang.Object", "toString"))
        return functools.reduce(
            lambda after, step: self.then(self._step(*step), after), reversed(steps), counted
        )

    def class_name(self, owner: Any) -> str:
        """The name of an object's class."""
        name: str = self.class_name_getter.apply(owner)
        return name

    def class_names(self, sequence: Any) -> list[str]:
        """The names of the classes of a Scala sequence's elements."""
        return self.map_strings(sequence, self.class_name_getter)

    @property
    def class_name_getter(self) -> Any:
        """``x => x.getClass().getName()`` as a Scala function."""
        return self.getter("java.lang.Object", "getClass", "java.lang.Class getName")

    def map_constants(self, strings: tuple[str, ...], function: Any) -> list[str]:
        """The results of a Scala function for constant strings, which are sent to the JVM only once."""
        sequence = self.cached(("strings", strings), lambda: self.mutable_sequence(*strings))
        return self.map_strings(sequence, function)

    def java_map(self, scala_map: Any) -> dict[str, str]:
        """A Scala ``Map[String, String]`` as a dict."""
        pairs = scala_map.toIndexedSeq()
        strings = self.strings(self.flat_map_sequence(pairs, self.getter("scala.Tuple2", "productIterator")))
        return dict(zip(strings[::2], strings[1::2], strict=True))

    def entries(self, java_map: Any) -> dict[str, str]:
        """A ``java.util.Map`` of strings as a dict; it must not change during the call."""
        entries = self.list_of(java_map.entrySet().toArray())
        keys, values = (
            self.map_strings(entries, self.getter("java.util.Map$Entry", part))
            for part in ("getKey", "getValue")
        )
        return dict(zip(keys, values, strict=True))

    def _read(self, owner: Any, key: tuple[str, ...], handle: Callable[[], Any]) -> str:
        """Read the string that a method handle returns for ``owner``: a short one with one call, a long one in slices.

        handle: creates the method handle. It is called once for each ``key``, and its Scala function is cached.
        """
        found = self.cached(("text", *key), lambda: self._string_or_builder(handle())).apply(owner)
        return found if isinstance(found, str) else "".join(_slices(found))

    def _string_or_builder(self, text: Any) -> Any:
        """A Scala function that returns the string of a method handle, or a StringBuilder with the string if it is long.

        py4j sends a string to Python as a whole, but of a StringBuilder only a reference, from which slices can be read:

            s => if (substring(s, 7000).isEmpty) s else new StringBuilder(s)

        Method handles cannot compare a length with a number, so the test is that nothing follows the first slice. Commons'
        ``substring`` returns an empty string for a position behind the end, where Java's raises an exception.
        """
        rest = self.handle("org.apache.commons.lang3.StringUtils", "substring", "java.lang.String", "int")
        is_short = self.then(
            self.bind(rest, 1, _SLICE_CODE_UNITS), self.handle("java.lang.String", "isEmpty")
        )
        new = self.cls("java.lang.StringBuilder").getConstructor(self._class_array("java.lang.String"))
        builder = self._lookup.unreflectConstructor(new)
        accepts = builder.type().changeReturnType(self.cls("java.lang.Object"))
        same = self._handles.identity(self.cls("java.lang.Object")).asType(accepts)
        either = self._handles.guardWithTest(is_short, same, builder.asType(accepts))
        return self.function(self.then(text, either))


def _slices(builder: Any) -> Iterator[str]:
    """Yield the string of a ``StringBuilder`` in slices.

    A slice must not divide a character, so a string with characters of two UTF-16 units is read as a whole.
    """
    length: int = builder.length()
    if builder.codePointCount(0, length) != length:
        yield str(builder.toString())
        return
    for i in range(0, length, _SLICE_CODE_UNITS):
        yield builder.substring(i, min(i + _SLICE_CODE_UNITS, length))
