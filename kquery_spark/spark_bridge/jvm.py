"""Reading many JVM values with few py4j calls.

A py4j call costs 0.14 ms and one whose answer is longer than the 8 KiB buffer of its socket 44 ms (Nagle's
algorithm waiting for a delayed ACK), so asking a plan node by node, or for all of its JSON at once, would
cost more than many a query. Two remedies, both from Python alone: Scala functions made of Java method
handles, so that ``seq.map(f)``, ``filter`` and ``mkString`` run inside the JVM; and long strings fetched in
slices.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.scala import ScalaApi, scala_api

T = TypeVar("T")
_MAX_REMEMBERED = 1000
_SLICE_CODE_UNITS = 7000
_SEPARATOR = "\x1e"
_ROW = "org.apache.spark.sql.catalyst.expressions.SpecializedGetters"


class Jvm:
    """Classes, method handles and Scala functions of one JVM, created once and cached.

    ``gateway`` is PySpark's py4j gateway (``SparkContext._gateway``).
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._java = gateway.jvm.java
        # py4j looks up every part of a dotted name in the JVM, each time: cache the frequent ones.
        self._handles = self._java.lang.invoke.MethodHandles
        self._proxies = self._java.lang.invoke.MethodHandleProxies
        self._object = self._java.lang.Object
        self._class = self._java.lang.Class
        self._lookup = self._handles.publicLookup()
        self._loader = self._java.lang.Thread.currentThread().getContextClassLoader()
        self._classes: dict[str, Any] = {}
        self._functions: dict[tuple[Any, ...], Any] = {}
        self._types: dict[str, Any] = {}
        self._object_numbers: Any = None
        self._values: dict[tuple[int, str], Any] = {}
        self._counter = itertools.count()

    def cls(self, name: str) -> Any:
        """The ``java.lang.Class`` of a name."""
        if name == "int":
            return self._java.lang.Integer.TYPE
        java_class = self._classes.get(name)
        if java_class is None:
            java_class = self._class.forName(name, True, self._loader)
            self._classes[name] = java_class
        return java_class

    def handle(self, cls: str, name: str, *parameters: str) -> Any:
        """The method handle of a public method; the receiver is its first argument."""
        key = ("handle", cls, name, *parameters)
        method_handle = self._functions.get(key)
        if method_handle is None:
            method = self.cls(cls).getMethod(name, self._class_array(*parameters))
            method_handle = self._functions[key] = self._lookup.unreflect(method)
        return method_handle

    def private_function(self, cls: str, name: str) -> Any:
        """``x => x.name()`` of a method that the class keeps to itself, as a Scala function."""
        method = self.cls(cls).getDeclaredMethod(name, self._class_array())
        method.setAccessible(True)
        return self.function(self._lookup.unreflect(method))

    def singleton(self, cls: str) -> Any:
        """The one instance of a Scala object, whose class ends in ``$``."""
        return self._owner(cls)

    def function(self, handle: Any) -> Any:
        """A method handle of one argument as a ``scala.Function1``."""
        return self._proxies.asInterfaceInstance(self.cls("scala.Function1"), handle)

    def supplier(self, owner: Any, cls: str, name: str) -> Any:
        """``() => owner.name()`` as a ``scala.Function0``."""
        handle = self.bind(self.handle(cls, name), 0, owner)
        return self._proxies.asInterfaceInstance(self.cls("scala.Function0"), handle)

    def bind(self, handle: Any, position: int, value: Any) -> Any:
        """A method handle with one argument fixed."""
        values = self._gateway.new_array(self._object, 1)
        values[0] = value
        return self._handles.insertArguments(handle, position, values)

    def then(self, first: Any, second: Any) -> Any:
        """The method handle that feeds the result of one to another."""
        accepts = second.type().changeParameterType(0, first.type().returnType())
        return self._handles.filterReturnValue(first, second.asType(accepts))

    def steps(self, key: str, *steps: tuple[Any, ...]) -> Any:
        """``x => x.a(...).b(...)`` as a Scala function, cached by its key.

        A step is a class, one of its methods, and its arguments: for each parameter its class and the value.
        """
        function = self._functions.get(("steps", key))
        if function is None:
            handle = None
            for cls, name, *given in steps:
                one = self.handle(cls, name, *given[::2])
                for value in given[1::2]:
                    one = self.bind(one, 1, value)
                handle = one if handle is None else self.then(handle, one)
            function = self._functions["steps", key] = self.function(handle)
        return function

    def triple(self, cls: str, *names: str) -> Any:
        """``x => (x.a, x.b, x.c)`` as a Scala function."""
        key = ("triple", cls, *names)
        function = self._functions.get(key)
        if function is None:
            anything = "java.lang.Object"
            make = self.cls("scala.Tuple3").getConstructor(self._class_array(anything, anything, anything))
            parts = self._gateway.new_array(self._owner("java.lang.invoke.MethodHandle"), 3)
            for i, name in enumerate(names):
                part = self.handle(cls, name)
                parts[i] = part.asType(part.type().changeReturnType(self.cls(anything)))
            handle = self._handles.filterArguments(self._lookup.unreflectConstructor(make), 0, parts)
            accepts = handle.type().dropParameterTypes(1, 3)
            places = self._gateway.new_array(self._gateway.jvm.int, 3)  # all 0: the one argument, thrice
            function = self._functions[key] = self.function(
                self._handles.permuteArguments(handle, accepts, places)
            )
        return function

    def has_method(self, cls: str, name: str) -> bool:
        """Whether a class has a public method of no arguments; the answer is cached, because a miss costs an exception."""
        key = ("has", cls, name)
        if key not in self._functions:
            try:
                self.handle(cls, name)
            except Exception:  # py4j's error for NoSuchMethodException
                self._functions[key] = False
            else:
                self._functions[key] = True
        return bool(self._functions[key])

    def getter(self, cls: str, *names: str) -> Any:
        """``x => x.name`` as a Scala function; further ``"class name"`` are called on the result."""
        key = ("get", cls, *names)
        function = self._functions.get(key)
        if function is None:
            handle = self.handle(cls, names[0])
            for name in names[1:]:
                owner, method = name.split(" ")
                handle = self.then(handle, self.handle(owner, method))
            function = self._functions[key] = self.function(handle)
        return function

    def static_function(self, cls: str, method: str, parameter: str) -> Any:
        """``x => cls.method(x)`` of a static method as a Scala function."""
        key = ("static function", cls, method)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self.function(self.handle(cls, method, parameter))
        return function

    def is_instance(self, cls: str) -> Any:
        """``x => x.isInstanceOf[cls]`` as a Scala function."""
        key = ("is", cls)
        function = self._functions.get(key)
        if function is None:
            test = self.handle("java.lang.Class", "isInstance", "java.lang.Object")
            function = self._functions[key] = self.function(self.bind(test, 0, self.cls(cls)))
        return function

    def identity(self) -> Any:
        """``x => x`` as a Scala function."""
        function = self._functions.get(("identity",))
        if function is None:
            function = self._functions["identity",] = self.function(
                self._handles.identity(self.cls("java.lang.Object"))
            )
        return function

    def mapper(self, cls: str, method: str, function: Any) -> Any:
        """``x => x.method(function)`` as a Scala function, cached with ``function``."""
        key = ("mapper", cls, method, function._get_object_id())
        mapper = self._functions.get(key)
        if mapper is None:
            handle = self.bind(self.handle(cls, method, "scala.Function1"), 1, function)
            mapper = self._functions[key] = self.function(handle)
        return mapper

    def static(self, cls: str, method: str) -> Any:
        """The result of a static method without parameters, called once and cached."""
        key = ("static", cls, method)
        value = self._functions.get(key)
        if value is None:
            value = self._functions[key] = self.static_call(cls, method)
        return value

    def static_call(self, cls: str, method: str) -> Any:
        """The result of a static method without parameters, called now."""
        return self.call(cls, method)

    def call(self, cls: str, method: str, *arguments: Any) -> Any:
        """The result of a static method, or of one of a Scala object; the method is looked up once."""
        key = ("member", cls, method)
        member = self._functions.get(key)
        if member is None:
            member = self._functions[key] = getattr(self._owner(cls), method)
        return member(*arguments)

    def new(self, cls: str, *arguments: Any) -> Any:
        """A new object of a class, which is looked up once."""
        return self._owner(cls)(*arguments)

    def _owner(self, cls: str) -> Any:
        """py4j's object for a class, or for the one instance of a Scala object, whose class ends in ``$``."""
        owner = self._functions.get(("owner", cls))
        if owner is None:
            owner = self._gateway.jvm
            for part in cls.split("."):
                owner = getattr(owner, part)
            if cls.endswith("$"):
                owner = getattr(owner, "MODULE$")
            self._functions["owner", cls] = owner
        return owner

    def none(self) -> Any:
        """Scala's ``None``."""
        return self.static("scala.Option", "empty")

    def some(self, value: Any) -> Any:
        """Scala's ``Some`` of a number or of a JVM object."""
        return self.new("scala.Some", value)

    def java_list(self, texts: Sequence[str]) -> Any:
        """An immutable ``java.util.List`` of strings, cached by value."""
        key = ("list", *texts)
        array_list = self._functions.get(key)
        if array_list is None:
            array_list = self.new("java.util.ArrayList")
            for text in texts:
                array_list.add(text)
            self._functions[key] = array_list
        return array_list

    def java_dict(self, texts: Mapping[str, str]) -> Any:
        """An immutable ``java.util.Map`` of strings, cached by value."""
        key = ("dict", *texts.items())
        hash_map = self._functions.get(key)
        if hash_map is None:
            hash_map = self.new("java.util.HashMap")
            for name, text in texts.items():
                hash_map.put(name, text)
            self._functions[key] = hash_map
        return hash_map

    def is_local(self) -> bool:
        """Whether Spark's tasks run in this very JVM."""
        local: bool = self.static("org.apache.spark.SparkContext", "getOrCreate").isLocal()
        return local

    def time_zone(self) -> str:
        """The name of this JVM's own time zone, which need not be the session's."""
        return str(self.static_call("java.util.TimeZone", "getDefault").getID())

    def replacer(self, cls: str, owner: str, method: str, replacement: str, seed: int) -> Any:
        """``{ case x: cls => new replacement(x.method, seed); case x => x }`` as a ``scala.PartialFunction``."""
        key = ("replacer", cls, owner, method, replacement, seed)
        partial_function = self._functions.get(key)
        if partial_function is None:
            handle = self.handle(owner, method)
            parameters = self._gateway.new_array(self._class, 2)
            parameters[0], parameters[1] = handle.type().returnType(), self._java.lang.Long.TYPE
            make = self._lookup.unreflectConstructor(self.cls(replacement).getConstructor(parameters))
            anything = self._handles.identity(self.cls("java.lang.Object"))
            handle = self.then(handle, self.bind(make, 1, seed)).asType(anything.type())
            test = self.bind(
                self.handle("java.lang.Class", "isInstance", "java.lang.Object"), 0, self.cls(cls)
            )
            guarded = self._handles.guardWithTest(test, handle, anything)
            function = self.function(guarded)
            partial_function = self._functions[key] = self.call(
                "scala.PartialFunction$", self.scala.partial_function, function
            )
        return partial_function

    def data_type(self, spark: Any) -> Any:
        """The DataType of a ``DataType.jsonValue``; the recent ones are cached."""
        text = json.dumps(spark)
        data_type = self._types.get(text)
        if data_type is None:
            if len(self._types) >= _MAX_REMEMBERED:
                self._types.clear()
            data_type = self._types[text] = self.call("org.apache.spark.sql.types.DataType", "fromJson", text)
        return data_type

    def row_value(self, position: int, spark: Any) -> Any:
        """``row => row.get(position, dataType)`` of an InternalRow as a Scala function; spark: as of ``data_type``."""
        key = ("value", position, json.dumps(spark))
        function = self._functions.get(key)
        if function is None:
            get = self.handle(_ROW, "get", "int", "org.apache.spark.sql.types.DataType")
            bound = self.bind(self.bind(get, 2, self.data_type(spark)), 1, position)
            function = self._functions[key] = self.function(bound)
        return function

    def column_texts(self, rows: Any, position: int, spark: Any) -> list[str | None]:
        """``toString`` of one column of InternalRows in an ``IndexedSeq``, None for NULL; spark: as of ``data_type``."""
        texts = self.strings(self.mapped(rows, self.row_value(position, spark)))
        if "null" not in texts:  # only a string may read so without being NULL
            return [*texts]
        nulls = self.strings(self.mapped(rows, self.row_is_null(position)))
        return [None if null == "true" else text for null, text in zip(nulls, texts, strict=True)]

    def row_is_null(self, position: int) -> Any:
        """``row => row.isNullAt(position)`` of an InternalRow as a Scala function."""
        key = ("null", position)
        function = self._functions.get(key)
        if function is None:
            handle = self.bind(self.handle(_ROW, "isNullAt", "int"), 1, position)
            function = self._functions[key] = self.function(handle)
        return function

    def remembered(self, key: Any, variant: str, make: Callable[[], T]) -> T:
        """The value of ``make``, cached for JVM objects equal to ``key``; the JVM's map holds its keys weakly."""
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
        """Spark's version, like ``4.3.0``."""
        return str(self._gateway.jvm.org.apache.spark.package.SPARK_VERSION())

    def empty(self) -> Any:
        """An empty Scala ``Seq``."""
        sequence = self._functions.get(("empty",))
        if sequence is None:
            array = self._gateway.new_array(self._object, 0)
            sequence = self._functions["empty",] = self._gateway.jvm.scala.Predef.wrapRefArray(array).toList()
        return sequence

    @cached_property
    def scala(self) -> ScalaApi:
        """What differs by the version of Scala's library."""
        return scala_api(str(self.call("scala.util.Properties$", "versionNumberString")))

    def mapped(self, sequence: Any, function: Any) -> Any:
        """``sequence.map(function)`` of a Scala sequence."""
        return sequence.map(function, *self._builders())

    def flat_mapped(self, sequence: Any, function: Any) -> Any:
        """``sequence.flatMap(function)`` of a Scala sequence."""
        return sequence.flatMap(function, *self._builders())

    def map_step(self, method: str, function: Any) -> tuple[Any, ...]:
        """``map`` or ``flatMap`` of a Scala sequence as one of the ``steps``."""
        builder = [given for one in self._builders() for given in (self.scala.builder, one)]
        return (self.scala.seq, method, "scala.Function1", function, *builder)

    def _builders(self) -> tuple[Any, ...]:
        """What ``map`` and ``flatMap`` take beside the function."""
        if self.scala.builder is None:
            return ()
        return (self.static("scala.collection.immutable.IndexedSeq$", "canBuildFrom"),)

    def sequence(self, items: Sequence[Any]) -> Any:
        """A Scala list of JVM objects."""
        sequence = self.empty()
        for item in reversed(items):
            sequence = getattr(sequence, "$colon$colon")(item)
        return sequence

    def identity_map(self) -> Any:
        """A new ``java.util.IdentityHashMap``."""
        return self.new("java.util.IdentityHashMap")

    def text(self, owner: Any, cls: str, method: str) -> str:
        """The string that ``owner.method()`` returns, in slices that fit the socket's buffer."""
        return self._read(owner, cls, method)

    def long_text(self, owner: Any, cls: str, method: str) -> str:
        """``text`` for a string that is nearly always long: calls ``method`` once, without reading the beginning first."""
        return "".join(_slices(self._builder_of(cls, method).apply(owner), 0))

    def list_of(self, array: Any) -> Any:
        """A Scala list of the objects of a Java array."""
        return self._gateway.jvm.scala.Predef.wrapRefArray(array).toList()

    def strings(self, sequence: Any, count: int | None = None) -> list[str]:
        """``toString`` of each element of a Scala sequence, in as few calls as their length allows.

        count: how many there are, where that is known.
        """
        count = sequence.length() if count is None else count
        if count == 0:
            return []
        joined = self._read(sequence, self.scala.iterable, "mkString", _SEPARATOR)
        parts = joined.split(_SEPARATOR)
        if len(parts) != count:
            raise Unsupported("a value in Spark's plan contains a control character")
        return parts

    def caller(self, owner: Any, cls: str, method: str, second: str | None = None) -> Any:
        """``text => owner.method(text)``, or ``owner.method(text, second)``, as a Scala function, cached with its owner."""
        key = ("caller", owner._get_object_id(), method, second)
        function = self._functions.get(key)
        if function is None:
            handle = self.handle(cls, method, *["java.lang.String"] * (1 if second is None else 2))
            if second is not None:
                handle = self.bind(handle, 2, second)
            function = self._functions[key] = self.function(self.bind(handle, 0, owner))
        return function

    def class_name(self, owner: Any) -> str:
        """The name of an object's class."""
        name: str = self.getter("java.lang.Object", "getClass", "java.lang.Class getName").apply(owner)
        return name

    def map_strings(self, texts: tuple[str, ...], function: Any) -> list[str]:
        """The result of a Scala function for each of some fixed strings, which cross to the JVM only once."""
        key = ("texts", texts)
        sequence = self._functions.get(key)
        if sequence is None:
            array = self._gateway.new_array(self._object, len(texts))
            for i, text in enumerate(texts):
                array[i] = text
            sequence = self._functions[key] = self._gateway.jvm.scala.Predef.wrapRefArray(array)
        return self.strings(self.mapped(sequence, function), len(texts))

    def java_map(self, scala_map: Any) -> dict[str, str]:
        """A Scala ``Map[String, String]`` as a dict."""
        pairs = scala_map.toIndexedSeq()
        texts = self.strings(self.flat_mapped(pairs, self.getter("scala.Tuple2", "productIterator")))
        return dict(zip(texts[::2], texts[1::2], strict=True))

    def _read(self, owner: Any, cls: str, method: str, *arguments: str) -> str:
        """The string ``owner.method(arguments)``: a short one in one call, a long one in slices."""
        start: str = self._beginning_of(cls, method, *arguments).apply(owner)
        units = len(start) if start.isascii() else len(start.encode("utf-16-le", "surrogatepass")) // 2
        if units < _SLICE_CODE_UNITS:
            return start
        builder = self._builder_of(cls, method, *arguments).apply(owner)
        return "".join(_slices(builder, _SLICE_CODE_UNITS, start))

    def _beginning_of(self, cls: str, method: str, *arguments: str) -> Any:
        """``x => x.method(arguments)`` cut to a slice."""
        key = ("beginning", cls, method, *arguments)
        function = self._functions.get(key)
        if function is None:
            left = self.handle("org.apache.commons.lang3.StringUtils", "left", "java.lang.String", "int")
            cut = self.bind(left, 1, _SLICE_CODE_UNITS)
            function = self._functions[key] = self.function(
                self.then(self._call(cls, method, *arguments), cut)
            )
        return function

    def _builder_of(self, cls: str, method: str, *arguments: str) -> Any:
        """``x => new StringBuilder(x.method(arguments))``: py4j would turn a string into Python's at once."""
        key = ("text", cls, method, *arguments)
        function = self._functions.get(key)
        if function is None:
            make = self.cls("java.lang.StringBuilder").getConstructor(self._class_array("java.lang.String"))
            handle = self.then(self._call(cls, method, *arguments), self._lookup.unreflectConstructor(make))
            function = self._functions[key] = self.function(handle)
        return function

    def _call(self, cls: str, method: str, *arguments: str) -> Any:
        """The method handle ``x => x.method(arguments)`` of fixed strings."""
        handle = self.handle(cls, method, *("java.lang.String" for _ in arguments))
        for argument in arguments:
            handle = self.bind(handle, 1, argument)
        return handle

    def _class_array(self, *names: str) -> Any:
        classes = self._gateway.new_array(self._class, len(names))
        for i, name in enumerate(names):
            classes[i] = self.cls(name)
        return classes


def _slices(builder: Any, start: int, before: str = "") -> Iterator[str]:
    """The text of a ``StringBuilder`` from ``start``, in slices; ``before`` is the text up to there, read already.

    Slices must not cut a character in two, so a string with characters of two UTF-16 units comes whole.
    """
    length: int = builder.length()
    if builder.codePointCount(0, length) != length:
        yield str(builder.toString())
        return
    yield before
    for i in range(start, length, _SLICE_CODE_UNITS):
        yield builder.substring(i, min(i + _SLICE_CODE_UNITS, length))
