"""The taxi generator: the TLC's schema, the same rows every time, and odd values on purpose."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from benchmarks import taxi

TLC_2019 = [
    "VendorID",
    "tpep_pickup_datetime",
    "tpep_dropoff_datetime",
    "passenger_count",
    "trip_distance",
    "RatecodeID",
    "store_and_fwd_flag",
    "PULocationID",
    "DOLocationID",
    "payment_type",
    "fare_amount",
    "extra",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "total_amount",
]


@pytest.fixture(scope="module")
def trips() -> pa.Table:
    return pa.concat_tables(taxi.month_tables(2, 50_000))


def count(mask: pa.ChunkedArray) -> int:
    return pc.sum(mask).as_py() or 0


def test_the_columns_are_the_first_17_of_the_yellow_trip_records_of_2019(trips):
    assert len(TLC_2019) == 17
    assert taxi.SCHEMA.names == TLC_2019
    assert trips.schema == taxi.SCHEMA


def test_the_same_arguments_give_the_same_rows_and_another_seed_gives_others(trips):
    assert pa.concat_tables(taxi.month_tables(2, 50_000)).equals(trips)
    assert not pa.concat_tables(taxi.month_tables(2, 50_000, seed=7)).equals(trips)
    assert not pa.concat_tables(taxi.month_tables(3, 50_000)).equals(trips)


def test_month_sizes_differ_and_add_up():
    for rows in (0, 1, 11, 24_000, 3_000_001):
        assert sum(taxi.month_sizes(rows)) == rows
        assert len(taxi.month_sizes(rows)) == 12
    assert len(set(taxi.month_sizes(1_000_000))) > 6


def test_a_month_larger_than_a_chunk_has_every_row(monkeypatch):
    monkeypatch.setattr(taxi, "_CHUNK_ROWS", 1_000)
    tables = list(taxi.month_tables(1, 2_500))
    assert [table.num_rows for table in tables] == [1_000, 1_000, 500]
    assert not tables[0].equals(tables[1])


def test_nulls_come_together_in_the_columns_where_the_tlc_has_them(trips):
    with_nulls = {name for name in trips.column_names if trips[name].null_count}
    assert with_nulls == {"VendorID", "passenger_count", "RatecodeID", "store_and_fwd_flag", "payment_type"}
    first = pc.is_null(trips["passenger_count"])
    assert 0.003 < count(first) / len(trips) < 0.009
    for name in with_nulls:
        assert pc.is_null(trips[name]).equals(first)


def test_there_are_refunds_empty_cars_and_timestamps_far_away(trips):
    assert count(pc.less(trips["fare_amount"], 0)) > 0
    assert count(pc.equal(trips["passenger_count"], 0)) > 0
    assert count(pc.equal(trips["trip_distance"], 0)) > 0
    years = set(pc.year(trips["tpep_pickup_datetime"]).to_pylist())
    assert 2019 in years
    assert years & {2001, 2003, 2008, 2009, 2038, 2088}
    assert count(pc.less(trips["tpep_dropoff_datetime"], trips["tpep_pickup_datetime"])) > 0
    assert pc.max(trips["fare_amount"]).as_py() > 100_000


def test_a_few_zones_and_single_passengers_dominate(trips):
    zones = sorted(trips["PULocationID"].value_counts().to_pylist(), key=lambda entry: -entry["counts"])
    assert len(zones) > 200
    assert sum(entry["counts"] for entry in zones[:10]) > len(trips) / 4
    assert count(pc.equal(trips["passenger_count"], 1)) > len(trips) / 2


def test_the_parts_of_a_bill_add_up_to_its_total(trips):
    parts = ("fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge")
    total = sum(trips[name].to_numpy() for name in parts)
    assert abs(total - trips["total_amount"].to_numpy()).max() < 1e-6


def test_twelve_monthly_files_in_both_formats_hold_the_same_rows(taxi_dir):
    parquet = ds.dataset(taxi_dir / "parquet", partitioning="hive")
    assert len(parquet.files) == 12
    assert parquet.count_rows() == 24_000
    assert (taxi_dir / "csv" / "year=2019" / "month=12" / "yellow_tripdata_2019-12.csv").exists()
    for month in (1, 12):
        name = f"year=2019/month={month}/yellow_tripdata_2019-{month:02d}"
        options = pa_csv.ConvertOptions(
            column_types={field.name: field.type for field in taxi.SCHEMA}, strings_can_be_null=True
        )
        text = pa_csv.read_csv(taxi_dir / "csv" / f"{name}.csv", convert_options=options)
        assert text.equals(pq.ParquetFile(taxi_dir / "parquet" / f"{name}.parquet").read())


def test_data_that_is_there_is_not_made_again_and_half_made_data_is(tmp_path):
    target = (
        taxi.generate(tmp_path / "t", rows=120) / "parquet/year=2019/month=1/yellow_tripdata_2019-01.parquet"
    )
    made = target.stat().st_mtime_ns
    taxi.generate(tmp_path / "t", rows=120)
    assert target.stat().st_mtime_ns == made
    (tmp_path / "t" / "_taxi.json").unlink()
    target.write_bytes(b"half")
    taxi.generate(tmp_path / "t", rows=120)
    assert pq.ParquetFile(target).metadata.num_rows == taxi.month_sizes(120)[0]


def test_progress_counts_every_row(tmp_path):
    seen: list[int] = []
    taxi.generate(tmp_path, rows=2_400, formats=("parquet",), progress=seen.append)
    assert sum(seen) == 2_400
    assert not (tmp_path / "csv").exists()


def test_spark_reads_both_formats_to_the_same_rows(spark, taxi_dir):
    parquet = spark.read.parquet(str(taxi_dir / "parquet"))
    text = spark.read.csv(str(taxi_dir / "csv"), header=True, schema=taxi.DDL)
    assert [(f.name, f.dataType) for f in parquet.schema] == [(f.name, f.dataType) for f in text.schema]
    assert parquet.columns[-2:] == ["year", "month"]
    assert parquet.exceptAll(text).count() == 0
    assert text.count() == 24_000
