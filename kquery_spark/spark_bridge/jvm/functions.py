"""Builds Scala functions from Java method handles, without any JVM code of our own.

With them, ``seq.map(f)`` and ``seq.filter(f)`` run inside the JVM, and one py4j call reads a fact of many objects. For
example, ``x => x.name().toString()`` is the handle of ``name``, followed by the handle of ``toString`` (``then``), wrapped
as a ``scala.Function1`` (``function``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kquery_spark.cached_property import cached_property
from kquery_spark.spark_bridge.jvm.scala import ScalaApi, scala_api


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
        self._classes: dict[str, Any] = {}
        self._functions: dict[tuple[Any, ...], Any] = {}

    def cls(self, name: str) -> Any:
        """The ``java.lang.Class`` with this name."""
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

    def private_function(self, cls: str, name: str, *steps: tuple[Any, ...]) -> Any:
        """``x => x.name()`` for a private method, as a Scala function.

        steps: further steps on the result, in the form of ``steps``.
        """
        key = ("private", cls, name, *steps)
        function = self._functions.get(key)
        if function is None:
            handle = functools.reduce(self._and_then, steps, self._private_handle(cls, name))
            function = self._functions[key] = self.function(handle)
        return function

    def _private_handle(self, cls: str, name: str) -> Any:
        method = self.cls(cls).getDeclaredMethod(name, self._class_array())
        method.setAccessible(True)
        return self._lookup.unreflect(method)

    def has_private_method(self, cls: str, name: str) -> bool:
        """Like ``has_method``, but for the methods that the class itself declares, public or not."""
        return self._is_found(("has private", cls, name), lambda: self._private_handle(cls, name))

    def singleton(self, cls: str) -> Any:
        """The singleton of a Scala object, whose class name ends in ``$``."""
        return self._owner(cls)

    def function(self, handle: Any) -> Any:
        """A method handle of one argument as a ``scala.Function1``."""
        return self._proxies.asInterfaceInstance(self.cls("scala.Function1"), handle)

    def supplier(self, owner: Any, cls: str, name: str) -> Any:
        """``() => owner.name()`` as a ``scala.Function0``."""
        handle = self.bind(self.handle(cls, name), 0, owner)
        return self._proxies.asInterfaceInstance(self.cls("scala.Function0"), handle)

    def bind(self, handle: Any, position: int, value: Any) -> Any:
        """A method handle in which one argument is bound to a constant."""
        values = self._gateway.new_array(self._object, 1)
        values[0] = value
        return self._handles.insertArguments(handle, position, values)

    def then(self, first: Any, second: Any) -> Any:
        """The method handle that applies ``second`` to the result of ``first``."""
        accepts = second.type().changeParameterType(0, first.type().returnType())
        return self._handles.filterReturnValue(first, second.asType(accepts))

    def steps(self, key: str, *steps: tuple[Any, ...]) -> Any:
        """``x => x.a(...).b(...)`` as a Scala function, cached by its key.

        A step consists of a class, one of its methods, and a class and value for each parameter. If a static method takes
        the result of the previous step, that parameter has a class only.
        """
        function = self._functions.get(("steps", key))
        if function is None:
            first, *others = steps
            handle = functools.reduce(self._and_then, others, self._step(*first))
            function = self._functions["steps", key] = self.function(handle)
        return function

    def _and_then(self, handle: Any, step: tuple[Any, ...]) -> Any:
        return self.then(handle, self._step(*step))

    def _step(self, cls: str, name: str, *given: Any) -> Any:
        handle = self.handle(cls, name, *given[::2])
        for value in given[1::2]:
            handle = self.bind(handle, 1, value)
        return handle

    def tuple_of_three(self, cls: str, *names: tuple[str, ...]) -> Any:
        """``x => (x.a, x.b, x.c)`` as a Scala function; each is named as in ``getter``."""
        key = ("triple", cls, *names)
        function = self._functions.get(key)
        if function is None:
            anything = "java.lang.Object"
            make = self.cls("scala.Tuple3").getConstructor(self._class_array(anything, anything, anything))
            parts = self._gateway.new_array(self._owner("java.lang.invoke.MethodHandle"), 3)
            for i, chain in enumerate(names):
                part = self._chain(cls, *chain)
                parts[i] = part.asType(part.type().changeReturnType(self.cls(anything)))
            handle = self._handles.filterArguments(self._lookup.unreflectConstructor(make), 0, parts)
            accepts = handle.type().dropParameterTypes(1, 3)
            places = self._gateway.new_array(
                self._gateway.jvm.int, 3
            )  # all 0: the single argument is used three times
            function = self._functions[key] = self.function(
                self._handles.permuteArguments(handle, accepts, places)
            )
        return function

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

    def getter(self, cls: str, *names: str) -> Any:
        """``x => x.name`` as a Scala function; further methods, given as ``"class name"``, are called on the result."""
        key = ("get", cls, *names)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self.function(self._chain(cls, *names))
        return function

    def _chain(self, cls: str, name: str, *further: str) -> Any:
        """The handle of a method without arguments, followed by further methods, given as ``"class name"``."""
        handle = self.handle(cls, name)
        for each in further:
            owner, method = each.split(" ")
            handle = self.then(handle, self.handle(owner, method))
        return handle

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
        """Call a static method or a method of a Scala object; the method is looked up once."""
        key = ("member", cls, method)
        member = self._functions.get(key)
        if member is None:
            member = self._functions[key] = getattr(self._owner(cls), method)
        return member(*arguments)

    def new(self, cls: str, *arguments: Any) -> Any:
        """Create an object of a class; the class is looked up once."""
        return self._owner(cls)(*arguments)

    def _owner(self, cls: str) -> Any:
        """py4j's object for a class, or for the singleton of a Scala object, whose class name ends in ``$``."""
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

    def empty(self) -> Any:
        """An empty Scala ``Seq``."""
        sequence = self._functions.get(("empty",))
        if sequence is None:
            array = self._gateway.new_array(self._object, 0)
            sequence = self._functions["empty",] = self._gateway.jvm.scala.Predef.wrapRefArray(array).toList()
        return sequence

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
        key = ("caller", owner._get_object_id(), method, second)
        function = self._functions.get(key)
        if function is None:
            handle = self.handle(cls, method, *["java.lang.String"] * (1 if second is None else 2))
            if second is not None:
                handle = self.bind(handle, 2, second)
            function = self._functions[key] = self.function(self.bind(handle, 0, owner))
        return function

    def _class_array(self, *names: str) -> Any:
        classes = self._gateway.new_array(self._class, len(names))
        for i, name in enumerate(names):
            classes[i] = self.cls(name)
        return classes
