"""Builds Scala functions from Java method handles, without any JVM code of our own.

With them, ``seq.map(f)`` and ``seq.filter(f)`` run inside the JVM, and one py4j call reads a fact of many objects. For
example, ``x => x.name().toString()`` is the handle of ``name``, followed by the handle of ``toString`` (``then``), wrapped
as a ``scala.Function1`` (``function``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from kquery_spark.cached_property import cached_property
from kquery_spark.spark_bridge.jvm.scala import ScalaApi, scala_api

M = TypeVar("M", bound=Callable[..., Any])


def cached_by_arguments(method: M) -> M:
    """Decorate a method of ``JvmFunctions`` so that its results are cached by its arguments, positional and hashable."""

    @functools.wraps(method)
    def cached(self: JvmFunctions, *arguments: Any) -> Any:
        return self.cached((method.__name__, *arguments), lambda: method(self, *arguments))

    return cast(M, cached)


class JvmFunctions:
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
        self._functions: dict[tuple[Any, ...], Any] = {}

    def cls(self, name: str) -> Any:
        """The ``java.lang.Class`` with this name."""
        if name == "int":
            return self._java.lang.Integer.TYPE
        return self.cached(("class", name), lambda: self._class.forName(name, True, self._loader))

    def cached(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The value of ``make``, which is called only once for each key unless the value is None."""
        value = self._functions.get(key)
        if value is None:
            value = self._functions[key] = make()
        return value

    @cached_by_arguments
    def handle(self, cls: str, name: str, *parameters: str) -> Any:
        """The method handle of a public method; the receiver is its first argument."""
        return self._lookup.unreflect(self.cls(cls).getMethod(name, self._class_array(*parameters)))

    @cached_by_arguments
    def private_function(self, cls: str, name: str, *steps: tuple[Any, ...]) -> Any:
        """``x => x.name()`` for a private method, as a Scala function.

        steps: further steps on the result, in the form of ``steps``.
        """
        return self.function(functools.reduce(self._and_then, steps, self._private_handle(cls, name)))

    def _private_handle(self, cls: str, name: str) -> Any:
        method = self.cls(cls).getDeclaredMethod(name, self._class_array())
        method.setAccessible(True)
        return self._lookup.unreflect(method)

    def has_private_method(self, cls: str, name: str) -> bool:
        """Like ``has_method``, but for the methods that the class itself declares, public or not."""
        return self._is_found(("has private", cls, name), lambda: self._private_handle(cls, name))

    def function(self, handle: Any) -> Any:
        """A method handle of one argument as a ``scala.Function1``."""
        return self._proxies.asInterfaceInstance(self.cls("scala.Function1"), handle)

    def supplier(self, owner: Any, cls: str, name: str) -> Any:
        """``() => owner.name()`` as a ``scala.Function0``."""
        handle = self.bind(self.handle(cls, name), 0, owner)
        return self._proxies.asInterfaceInstance(self.cls("scala.Function0"), handle)

    def bind(self, handle: Any, position: int, value: Any) -> Any:
        """A method handle in which one argument is bound to a constant."""
        return self._handles.insertArguments(handle, position, self._array(self._object, value))

    def then(self, first: Any, second: Any) -> Any:
        """The method handle that applies ``second`` to the result of ``first``."""
        accepts = second.type().changeParameterType(0, first.type().returnType())
        return self._handles.filterReturnValue(first, second.asType(accepts))

    def steps(self, key: str, *steps: tuple[Any, ...]) -> Any:
        """``x => x.a(...).b(...)`` as a Scala function, cached by its key.

        A step consists of a class, one of its methods, and a class and value for each parameter. If a static method takes
        the result of the previous step, that parameter has a class only.
        """
        first, *others = steps
        return self.cached(
            ("steps", key),
            lambda: self.function(functools.reduce(self._and_then, others, self._step(*first))),
        )

    def _and_then(self, handle: Any, step: tuple[Any, ...]) -> Any:
        return self.then(handle, self._step(*step))

    def _step(self, cls: str, name: str, *given: Any) -> Any:
        handle = self.handle(cls, name, *given[::2])
        for value in given[1::2]:
            handle = self.bind(handle, 1, value)
        return handle

    @cached_by_arguments
    def tuple_getter(self, cls: str, *names: tuple[str, ...]) -> Any:
        """``x => (x.a, x.b)`` as a Scala function. names: up to 22 tuples, each with the names that ``getter`` takes."""
        return self.function(self.tuple_handle(*(self._chain(cls, *chain) for chain in names)))

    def tuple_handle(self, *parts: Any) -> Any:
        """Combine method handles of one argument to ``x => (part1(x), part2(x))``, which returns a Scala tuple."""
        anything = "java.lang.Object"
        accepts_any = self._handles.identity(self.cls(anything)).type()
        make = self.cls(f"scala.Tuple{len(parts)}").getConstructor(
            self._class_array(*[anything] * len(parts))
        )
        handle = self._handles.filterArguments(
            self._lookup.unreflectConstructor(make),
            0,
            self._array(
                self.owner("java.lang.invoke.MethodHandle"), *(part.asType(accepts_any) for part in parts)
            ),
        )
        # The array consists of zeros, so each part gets the single argument.
        places = self._gateway.new_array(self._gateway.jvm.int, len(parts))
        accepts = handle.type().dropParameterTypes(1, len(parts))
        return self._handles.permuteArguments(handle, accepts, places)

    def has_method(self, cls: str, name: str) -> bool:
        """Return whether a class has a public method without arguments; cached, because a miss costs an exception."""
        return self._is_found(("has", cls, name), lambda: self.handle(cls, name))

    def _is_found(self, key: tuple[Any, ...], look_up: Callable[[], Any]) -> bool:
        if key not in self._functions:
            try:
                look_up()
            except Exception:  # py4j's error for NoSuchMethodException
                self._functions[key] = False
            else:
                self._functions[key] = True
        return bool(self._functions[key])

    @cached_by_arguments
    def getter(self, cls: str, *names: str) -> Any:
        """``x => x.name`` as a Scala function; further methods, given as ``"class name"``, are called on the result."""
        return self.function(self._chain(cls, *names))

    def _chain(self, cls: str, name: str, *further: str) -> Any:
        """The handle of a method without arguments, followed by further methods, given as ``"class name"``."""
        handle = self.handle(cls, name)
        for each in further:
            owner, method = each.split(" ")
            handle = self.then(handle, self.handle(owner, method))
        return handle

    @cached_by_arguments
    def static_function(self, cls: str, method: str, parameter: str) -> Any:
        """``x => cls.method(x)`` of a static method as a Scala function."""
        return self.function(self.handle(cls, method, parameter))

    @cached_by_arguments
    def is_instance(self, cls: str) -> Any:
        """``x => x.isInstanceOf[cls]`` as a Scala function."""
        return self.function(self._instance_test(cls))

    def _instance_test(self, cls: str) -> Any:
        return self.bind(self.handle("java.lang.Class", "isInstance", "java.lang.Object"), 0, self.cls(cls))

    @cached_by_arguments
    def identity(self) -> Any:
        """``x => x`` as a Scala function."""
        return self.function(self._handles.identity(self.cls("java.lang.Object")))

    def mapper(self, cls: str, method: str, function: Any) -> Any:
        """``x => x.method(function)`` as a Scala function, cached with ``function``."""
        return self.cached(
            ("mapper", cls, method, function._get_object_id()),
            lambda: self.function(self.bind(self.handle(cls, method, "scala.Function1"), 1, function)),
        )

    @cached_by_arguments
    def static(self, cls: str, method: str) -> Any:
        """The result of a static method without parameters, called once and cached."""
        return self.call(cls, method)

    def call(self, cls: str, method: str, *arguments: Any) -> Any:
        """Call a static method or a method of a Scala object; the method is looked up once."""
        member = self.cached(("member", cls, method), lambda: getattr(self.owner(cls), method))
        return member(*arguments)

    def new(self, cls: str, *arguments: Any) -> Any:
        """Create an object of a class; the class is looked up once."""
        return self.owner(cls)(*arguments)

    @cached_by_arguments
    def owner(self, cls: str) -> Any:
        """py4j's object for a class, or for the singleton of a Scala object, whose class name ends in ``$``."""
        owner = functools.reduce(getattr, cls.split("."), self._gateway.jvm)
        return getattr(owner, "MODULE$") if cls.endswith("$") else owner

    def none(self) -> Any:
        """Scala's ``None``."""
        return self.static("scala.Option", "empty")

    def some(self, value: Any) -> Any:
        """Scala's ``Some`` of a number or of a JVM object."""
        return self.new("scala.Some", value)

    @cached_by_arguments
    def replacer(self, cls: str, owner: str, method: str, replacement: str, seed: int) -> Any:
        """``{ case x: cls => new replacement(x.method, seed); case x => x }`` as a ``scala.PartialFunction``."""
        handle = self.handle(owner, method)
        parameters = self._array(self._class, handle.type().returnType(), self._java.lang.Long.TYPE)
        make = self._lookup.unreflectConstructor(self.cls(replacement).getConstructor(parameters))
        anything = self._handles.identity(self.cls("java.lang.Object"))
        handle = self.then(handle, self.bind(make, 1, seed)).asType(anything.type())
        guarded = self._handles.guardWithTest(self._instance_test(cls), handle, anything)
        return self.call("scala.PartialFunction$", self.scala.partial_function, self.function(guarded))

    @cached_by_arguments
    def empty(self) -> Any:
        """An empty Scala ``Seq``."""
        return self.mutable_sequence().toList()

    def mutable_sequence(self, *values: Any) -> Any:
        """A mutable Scala sequence of objects or strings."""
        return self._gateway.jvm.scala.Predef.wrapRefArray(self._array(self._object, *values))

    @cached_property
    def scala(self) -> ScalaApi:
        """Names that depend on the version of the Scala library."""
        return scala_api(str(self.call("scala.util.Properties$", "versionNumberString")))

    def map_step(self, method: str, function: Any) -> tuple[Any, ...]:
        """``map`` or ``flatMap`` of a Scala sequence as one of the ``steps``."""
        builder = [given for one in self._builders() for given in (self.scala.builder, one)]
        return (self.scala.seq, method, "scala.Function1", function, *builder)

    def _builders(self) -> tuple[Any, ...]:
        """The second arguments of ``map`` and ``flatMap``."""
        if self.scala.builder is None:
            return ()
        return (self.static("scala.collection.immutable.IndexedSeq$", "canBuildFrom"),)

    def string_method(self, owner: Any, cls: str, method: str, second: str | None = None) -> Any:
        """``text => owner.method(text)``, or ``owner.method(text, second)``, as a Scala function, cached with its owner."""

        def make() -> Any:
            handle = self.handle(cls, method, *["java.lang.String"] * (1 if second is None else 2))
            if second is not None:
                handle = self.bind(handle, 2, second)
            return self.function(self.bind(handle, 0, owner))

        return self.cached(("caller", owner._get_object_id(), method, second), make)

    def _class_array(self, *names: str) -> Any:
        return self._array(self._class, *map(self.cls, names))

    def _array(self, component: Any, *values: Any) -> Any:
        """A Java array of these values."""
        array = self._gateway.new_array(component, len(values))
        for i, value in enumerate(values):
            array[i] = value
        return array
