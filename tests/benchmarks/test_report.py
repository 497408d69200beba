"""Two runs in percent, charts, and the command line."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks import plots, report
from benchmarks.bench import main, parse_conf, parse_engines
from benchmarks.results import EngineResult, QueryResult, Results, geometric_mean, merged, read
from kquery_spark.cli.failures import Exit, run


def results(times, scale=1.0, cores=2, sha="a", memory=100 * 2**20):
    """``times``: query -> engine -> seconds, None for a wrong answer."""

    def engine_result(seconds):
        if seconds is None:
            return EngineResult("wrong", "differs")
        return EngineResult("ok", warm_seconds=(seconds, seconds * 9, seconds / 9), memory={"total": memory})

    queries = tuple(QueryResult(q, {e: engine_result(s) for e, s in by.items()}) for q, by in times.items())
    engines = tuple(dict.fromkeys(e for by in times.values() for e in by))
    return Results(
        "tpch", scale, engines, "then", "now", {"cores": cores, "when": "auto"}, {"cores": cores}, {},
        [{"table": "t", "file": "t.parquet", "bytes": 1, "sha256": sha}], queries, "derived from TPC-H",
    )  # fmt: skip


BEFORE = results(
    {"1": {"spark": 4.0, "kquery": 2.0}, "2": {"spark": 1.0, "kquery": 1.0}, "3": {"kquery": None}}
)
AFTER = results(
    {"1": {"spark": 4.0, "kquery": 1.0}, "2": {"spark": 1.0, "kquery": 1.25}, "3": {"kquery": 1.0}}
)


def test_changes_are_percent_of_the_first_run_and_only_of_right_answers():
    found = report.changes(BEFORE, AFTER, "kquery")
    assert [(c.query, c.percent) for c in found] == [("1", pytest.approx(-50)), ("2", pytest.approx(25))]
    total = report.total_change(found)
    assert total is not None
    assert (total.before, total.after, total.percent) == (3.0, 2.25, pytest.approx(-25))
    assert report.total_change([]) is None


def printed(renderable):
    console = Console(file=io.StringIO(), width=160)
    console.print(renderable)
    return console.file.getvalue()


def test_the_table_of_changes_has_a_sign_and_totals():
    text = printed(report.change_table(BEFORE, AFTER))
    assert "-50.0 %" in text
    assert "+25.0 %" in text
    assert "-25.0 %" in text
    assert report.memory_lines(BEFORE, results({"1": {"kquery": 1.0}}, memory=150 * 2**20)) == [
        "peak memory, kquery: 100 MiB and 150 MiB, +50.0 %"
    ]


def test_other_data_machines_and_options_are_reported():
    assert report.unlike(BEFORE, AFTER) == []
    assert report.unlike(BEFORE, results({}, sha="b")) == ["the data files differ"]
    differences = report.unlike(BEFORE, results({}, scale=10.0, cores=8))
    assert differences == [
        "tpch at scale 1 against tpch at scale 10",
        "cores: 2 against 8",
        "option cores: 2 against 8",
    ]


def test_ratios_and_means():
    assert BEFORE.ratios() == {"1": 2.0, "2": 1.0}
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([]) is None
    summary = AFTER.summary()["spark_over_kquery"]
    assert summary["below_one"] == ["2"]
    assert summary["lowest"] == ("2", 0.8)
    assert summary["geometric_mean"] == pytest.approx((4 * 0.8) ** 0.5)
    text = printed(report.result_table(BEFORE))
    assert "2.00x" in text
    assert "wrong" in text


def test_scaling_counts_queries_that_are_right_at_every_scale():
    small = results({"1": {"kquery": 1.0}, "2": {"kquery": 5.0}})
    large = results({"1": {"kquery": 8.0}, "2": {"kquery": None}}, scale=10.0)
    assert plots.scaling_points([large, small], "kquery", "scale") == [(1.0, 1.0), (10.0, 8.0)]
    assert plots.scaling_points([large, small], "spark", "scale") == []


def test_every_chart_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = plots.draw([BEFORE, results({"1": {"spark": 9.0, "kquery": 3.0}}, scale=10.0)], tmp_path)
    names = sorted(path.name for path in drawn)
    assert names == [
        "tpch-1-2cores-bars.svg", "tpch-1-2cores-speedup.svg", "tpch-10-2cores-bars.svg",
        "tpch-10-2cores-speedup.svg", "tpch-scaling.svg",
    ]  # fmt: skip
    assert all("<svg" in path.read_text() for path in drawn)


def test_engines_by_name():
    assert parse_engines("kquery, spark,kquery") == ("kquery", "spark")
    assert "duckdb" in parse_engines("all")


def test_settings_are_pairs():
    assert parse_conf(("spark.kquery.keptBytes = 0", "a=b=c")) == {"spark.kquery.keptBytes": "0", "a": "b=c"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--engines", "quack"], "not quack"),
        (["run", "--queries", "99"], "suite tpch has no query '99'"),
        (["run", "--conf", "spark.kquery.keptBytes"], "KEY=VALUE, not spark.kquery.keptBytes"),
        (["run", "--suite", "tpcx"], "'tpcx' is not one of"),
    ],
)
def test_wrong_arguments_end_with_code_2(capsys, arguments, says):
    assert run("bench", lambda: main(arguments)) == Exit.USAGE
    assert says in capsys.readouterr().err


def test_compare_from_the_command_line(tmp_path, capsys):
    BEFORE.write(tmp_path / "a.json")
    AFTER.write(tmp_path / "b.json")
    assert (
        run("bench", lambda: main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")])) == Exit.OK
    )
    assert "-50.0 %" in capsys.readouterr().out
    (tmp_path / "c.json").write_text("no")
    code = run("bench", lambda: main(["compare", str(tmp_path / "a.json"), str(tmp_path / "c.json")]))
    assert code == Exit.UNREADABLE


def test_sessions_are_merged(tmp_path, capsys):
    one_result, two = (
        results({"1": {"spark": 2.0, "kquery": 1.0}}),
        results({"1": {"spark": 8.0, "kquery": 1.0}}, memory=7),
    )
    whole = merged([one_result, two])
    spark = whole.queries[0].engines["spark"]
    assert spark.warm_seconds == (2.0, 18.0, 2 / 9, 8.0, 72.0, 8 / 9)
    assert (spark.memory["total"], whole.options["sessions"], whole.ratios()) == (100 * 2**20, 2, {"1": 5.0})
    one_result.write(tmp_path / "a.json")
    two.write(tmp_path / "b.json")
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    assert run("bench", lambda: main(["merge", *files, "--json", str(tmp_path / "c.json")])) == Exit.OK
    assert "5.00x" in capsys.readouterr().out
    assert read(tmp_path / "c.json") == whole


def test_a_wrong_answer_of_one_session_is_not_merged_away():
    whole = merged([results({"3": {"kquery": 1.0}}), results({"3": {"kquery": None}})])
    assert whole.queries[0].engines["kquery"].status == "wrong"
    (query,) = results({"3": {"kquery": 1.0}}).queries
    more = replace(query, engines={"kquery": replace(query.engines["kquery"], rows=5)})
    one_result = results({"3": {"kquery": 1.0}})
    found = merged([one_result, replace(one_result, queries=(more,))]).queries[0].engines["kquery"]
    assert (found.status, found.detail) == ("wrong", "rows differ from session to session: None, 5")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (results({"1": {"spark": 4.0, "kquery": 2.0}}), "not of the same queries"),
        (results({}, cores=8), "cores: 2 against 8"),
    ],
)
def test_runs_that_do_not_belong_together(tmp_path, capsys, other, says):
    BEFORE.write(tmp_path / "a.json")
    other.write(tmp_path / "b.json")
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    assert run("bench", lambda: main(["merge", *files])) == Exit.USAGE
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare", "plot", "merge"])
def test_files_that_are_not_there(command, capsys):
    assert run("bench", lambda: main([command, "no.json", "no.json"])) == Exit.MISSING_PATH
    assert "path does not exist: no.json" in capsys.readouterr().err
