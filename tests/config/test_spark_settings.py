"""One list of settings feeds the properties file and ``kq.configure``."""

import os
import socket
from pathlib import Path

import pytest

from kquery_spark.config import spark_settings
from kquery_spark.config.spark_settings import OPTIONAL, SETTINGS, configure
from kquery_spark.errors import ConfigError
from tests.docs.settings_page import render_properties

CONF = Path(__file__).parents[2] / "conf" / "kquery-spark.conf"


class RecordingBuilder:
    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self._options: dict[str, str] = {}

    def config(self, key: str, value: str) -> "RecordingBuilder":
        self.seen[key] = value
        return self


def test_the_properties_file_is_what_the_settings_say():
    assert CONF.read_text() == render_properties()


def test_every_line_of_the_properties_file_is_a_comment_or_a_pair_with_its_reason_above():
    lines = CONF.read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert pairs == {setting.key: setting.value for setting in SETTINGS}
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            assert lines[number - 1].startswith("# ")


def test_unix_domain_sockets_come_first():
    assert SETTINGS[0][:2] == ("spark.python.unix.domain.socket.enabled", "true")


def test_configure_applies_every_setting_and_returns_the_builder():
    builder = RecordingBuilder()
    assert configure(builder) is builder
    assert builder.seen == {setting.key: setting.value for setting in SETTINGS}


SOCKETS = {"spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"}


@pytest.mark.parametrize("lacking", ["sockets", "a directory", "the right to write"])
def test_without_unix_domain_sockets_the_others_are_applied(monkeypatch, lacking):
    if lacking == "sockets":
        monkeypatch.delattr(socket, "AF_UNIX")
    elif lacking == "a directory":
        monkeypatch.setattr(spark_settings, "SOCKET_DIRECTORY", "/no/such/directory")
    else:
        monkeypatch.setattr(os, "access", lambda *_: False)
    builder = configure(RecordingBuilder())
    assert set(builder.seen) == {setting.key for setting in SETTINGS} - SOCKETS


def test_configure_needs_a_builder(spark):
    with pytest.raises(
        ConfigError, match=r"SparkSession.builder before getOrCreate\(\), not pyspark.SparkSession"
    ):
        configure(spark)


def test_what_was_set_before_stays():
    builder = RecordingBuilder()
    builder._options = {"spark.python.unix.domain.socket.enabled": "false"}
    configure(builder)
    assert set(builder.seen) == {setting.key for setting in SETTINGS} - set(builder._options)


def test_pysparks_builder_keeps_what_was_set_before():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.python.worker.reuse", "false")
    assert configure(builder) is builder
    assert builder._options["spark.python.worker.reuse"] == "false"
    assert builder._options["spark.python.unix.domain.socket.dir"] == "/tmp"


def test_a_socket_in_the_directory_has_a_path_that_is_short_enough():
    name = f".{'x' * 36}.sock"  # as Spark names them
    assert len(f"{spark_settings.SOCKET_DIRECTORY}/{name}".encode()) < 104


def test_nothing_that_workers_may_lack_is_set():
    """Neither ``configure`` nor the file names our package, without which no Python function would run."""
    assert all("kquery" not in setting.value for setting in SETTINGS)
    lines = CONF.read_text().splitlines()
    for setting in OPTIONAL:
        assert f"#{setting.key}={setting.value}" in lines
        assert f"{setting.key}={setting.value}" not in lines


def test_plain_answers_do_not_depend_on_a_setting():
    """toPandas and createDataFrame give other types, and take other values, by Arrow."""
    assert "spark.sql.execution.arrow.pyspark.enabled" not in {setting.key for setting in SETTINGS}


def test_spark_knows_every_setting_by_the_value_we_ask_for(spark):
    for setting in SETTINGS:
        assert spark.sparkContext.getConf().get(setting.key) == setting.value
        if setting.key.startswith("spark.sql."):
            assert spark.conf.isModifiable(setting.key)
