"""One list of settings feeds the properties file and ``kq.configure``."""

from pathlib import Path

from kquery_spark.config.spark_settings import SETTINGS, configure, render_properties

CONF = Path(__file__).parents[2] / "conf" / "kquery-spark.conf"


class RecordingBuilder:
    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

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


def test_spark_knows_every_setting_by_the_value_we_ask_for(spark):
    for setting in SETTINGS:
        assert spark.sparkContext.getConf().get(setting.key) == setting.value
        if setting.key.startswith("spark.sql."):
            assert spark.conf.isModifiable(setting.key)
