"""``kq.enable`` replaces methods of PySpark, including those that other code wrapped, and ``kq.disable`` restores them."""

from __future__ import annotations

import functools
import inspect

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

import kquery_spark as kq
from kquery_spark.accelerate import enable as module


def test_disable_gives_pysparks_class_its_methods_back(spark):
    names = [*module._ACTIONS]
    before = {name: vars(ClassicDataFrame)[name] for name in names}
    other = spark.newSession()
    kq.enable(spark)
    kq.enable(other)
    kq.enable(spark)
    assert all(vars(ClassicDataFrame)[name] is not before[name] for name in names)
    kq.disable(spark)
    assert all(vars(ClassicDataFrame)[name] is not before[name] for name in names)
    kq.disable(other)
    kq.disable(other)
    assert {name: vars(ClassicDataFrame)[name] for name in names} == before


def test_disable_gives_pysparks_session_its_sql_back(spark):
    before = SparkSession.sql
    kq.enable(spark)
    assert SparkSession.sql is not before
    assert (SparkSession.sql.__doc__, SparkSession.sql.__name__) == (before.__doc__, before.__name__)
    kq.disable(spark)
    assert SparkSession.sql is before


def test_sql_takes_arguments_of_any_name(monkeypatch):
    def sql(self, sqlQuery, args=None, **kwargs):
        return kwargs

    monkeypatch.setattr(module, "_options", lambda _: module._Options("spark", "auto"))
    names = {"session": 1, "options": 2, "signature": 3}
    assert module._wrapper("sql", sql, module._sql)(object(), "SELECT {session}", **names) == names


def test_what_others_have_wrapped_since_stays(spark, monkeypatch):
    kq.enable(spark)
    ours = ClassicDataFrame.count
    monkeypatch.setattr(ClassicDataFrame, "count", lambda self: ours(self))
    theirs = ClassicDataFrame.count
    kq.disable(spark)
    assert ClassicDataFrame.count is theirs
    assert spark.range(3).count() == 3
    kq.enable(spark)
    try:
        assert spark.range(3).count() == 3
    finally:
        kq.disable(spark)


def test_a_wrapper_of_other_code_may_lack_a_name(spark, monkeypatch):
    class Traced:
        def __init__(self, function):
            self.function = function

        def __get__(self, instance, owner=None):
            return self if instance is None else functools.partial(self.function, instance)

        def __call__(self, *args):
            return self.function(*args)

    theirs = Traced(ClassicDataFrame.count)
    monkeypatch.setattr(ClassicDataFrame, "count", theirs)
    kq.enable(spark)
    try:
        assert spark.range(3).count() == 3
    finally:
        kq.disable(spark)
    assert ClassicDataFrame.count is theirs


def test_a_property_that_other_code_replaced_is_not_wrapped(spark, monkeypatch):
    class Traced:
        def __get__(self, instance, owner=None):
            return self if instance is None else "a writer of other code"

    theirs = Traced()
    monkeypatch.setattr(ClassicDataFrame, "write", theirs)
    kq.enable(spark)
    try:
        assert spark.range(3).write == "a writer of other code"
        assert spark.range(3).count() == 3
    finally:
        kq.disable(spark)
    assert ClassicDataFrame.write is theirs


def test_an_enable_that_fails_does_not_prevent_the_next_one(spark, monkeypatch):
    real = module._wrapper

    def failing(name, original, run):
        if name == "count":
            raise MemoryError
        return real(name, original, run)

    own = ClassicDataFrame.collect
    with monkeypatch.context() as patch:
        patch.setattr(module, "_wrapper", failing)
        with pytest.raises(MemoryError):
            kq.enable(spark)
    assert ClassicDataFrame.collect is own
    kq.enable(spark)
    try:
        assert ClassicDataFrame.collect is not own
    finally:
        kq.disable(spark)
    assert ClassicDataFrame.collect is own


def test_wrappers_look_like_pysparks_own(spark):
    def look(member):
        function = member.fget if isinstance(member, property) else member
        return inspect.signature(function), member.__doc__, function.__name__, function.__qualname__

    before = {name: look(vars(ClassicDataFrame)[name]) for name in module._ACTIONS}
    kq.enable(spark)
    try:
        assert {name: look(vars(ClassicDataFrame)[name]) for name in module._ACTIONS} == before
    finally:
        kq.disable(spark)
