"""NYC-taxi-shaped data, made up but shaped like the TLC's yellow-cab trip records of 2019.

The TLC's files of 2019 have 18 columns. These have the first 17: ``congestion_surcharge``, which was
introduced during that year and is empty in its first weeks, is left out. Twelve monthly files lie under
``year=2019/month=N/``, as Parquet and as CSV with a header. The same arguments give the same rows on
every machine with the same numpy: only uniform random numbers are drawn, everything else is arithmetic.

What makes the data worth querying: months of different sizes, a few busy zones that dominate, NULLs
(vendor, passengers, rate code, flag and payment type, together, as the TLC has them), refunds with
negative fares, trips without passengers, an absurd fare, timestamps decades away.

    python -m benchmarks.taxi OUTPUT_DIR --rows 3000000
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SCHEMA = pa.schema(
    [
        ("VendorID", pa.int32()),
        ("tpep_pickup_datetime", pa.timestamp("us")),
        ("tpep_dropoff_datetime", pa.timestamp("us")),
        ("passenger_count", pa.int32()),
        ("trip_distance", pa.float64()),
        ("RatecodeID", pa.int32()),
        ("store_and_fwd_flag", pa.string()),
        ("PULocationID", pa.int32()),
        ("DOLocationID", pa.int32()),
        ("payment_type", pa.int32()),
        ("fare_amount", pa.float64()),
        ("extra", pa.float64()),
        ("mta_tax", pa.float64()),
        ("tip_amount", pa.float64()),
        ("tolls_amount", pa.float64()),
        ("improvement_surcharge", pa.float64()),
        ("total_amount", pa.float64()),
    ]
)
"""The 17 columns. Pick-up and drop-off are wall-clock times without a zone, as the TLC publishes them."""

_DDL_TYPES = {
    pa.int32(): "INT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}

DDL = ", ".join(f"{field.name} {_DDL_TYPES[field.type]}" for field in SCHEMA)
"""``SCHEMA`` in Spark's words, for readers that need the types (CSV)."""

FORMATS = ("parquet", "csv")
DEFAULT_ROWS = 3_000_000
DEFAULT_SEED = 2019

# Trips of each month of 2019, in ten thousands: the months are not equal.
_MONTH_WEIGHTS = np.array([767, 702, 783, 743, 757, 694, 631, 607, 657, 722, 688, 690], dtype=np.float64)
# Trips by hour of the day: few at five in the morning, most at seven in the evening.
_HOUR_WEIGHTS = np.array(
    [30, 21, 15, 10, 8, 8, 17, 30, 39, 40, 39, 41, 43, 43, 45, 44, 40, 48, 56, 57, 52, 50, 47, 39],
    dtype=np.float64,
)
_CHUNK_ROWS = 500_000
_ZONES = 265
_MICROS = 1_000_000


def generate(
    out: str | Path,
    rows: int = DEFAULT_ROWS,
    seed: int = DEFAULT_SEED,
    formats: tuple[str, ...] = FORMATS,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Write ``rows`` trips below ``out`` as ``<format>/year=2019/month=N/`` and return ``out``.

    A directory that already holds exactly this data is left as it is. ``progress`` is called with the
    number of rows just written.
    """
    out = Path(out)
    options = {"rows": rows, "seed": seed, "formats": sorted(formats), "version": 1}
    manifest = out / "_taxi.json"
    if manifest.exists() and json.loads(manifest.read_text()) == options:
        if progress is not None:
            progress(rows)
        return out
    manifest.unlink(missing_ok=True)
    for name in FORMATS:
        shutil.rmtree(out / name, ignore_errors=True)
    for month, month_rows in enumerate(month_sizes(rows), start=1):
        _write_month(out, month, month_rows, seed, formats, progress)
    # written last: a run that was interrupted leaves no manifest and is done again
    manifest.write_text(json.dumps(options) + "\n")
    return out


def month_sizes(rows: int) -> list[int]:
    """``rows`` shared out over the twelve months by their weights; the sizes add up exactly."""
    edges = np.floor(np.cumsum(_MONTH_WEIGHTS) / _MONTH_WEIGHTS.sum() * rows + 0.5).astype(np.int64)
    return [int(size) for size in np.diff(edges, prepend=0)]


def month_tables(month: int, rows: int, seed: int = DEFAULT_SEED) -> Iterator[pa.Table]:
    """The trips of one month in tables of at most half a million rows."""
    for chunk, start in enumerate(range(0, rows, _CHUNK_ROWS)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, month, chunk])))
        yield _trips(rng, month, min(_CHUNK_ROWS, rows - start))


def _write_month(
    out: Path,
    month: int,
    rows: int,
    seed: int,
    formats: tuple[str, ...],
    progress: Callable[[int], None] | None,
) -> None:
    writers: list[tuple[str, pq.ParquetWriter | pa_csv.CSVWriter]] = []
    for name in formats:
        directory = out / name / "year=2019" / f"month={month}"
        directory.mkdir(parents=True, exist_ok=True)
        target = directory / f"yellow_tripdata_2019-{month:02d}.{name}"
        if name == "parquet":
            writers.append((name, pq.ParquetWriter(target, SCHEMA)))
        elif name == "csv":
            options = pa_csv.WriteOptions(quoting_style="none")
            writers.append((name, pa_csv.CSVWriter(target, _csv_schema(), write_options=options)))
        else:
            raise ValueError(f"unknown format {name!r}: one of {', '.join(FORMATS)}")
    for table in month_tables(month, rows, seed):
        for name, writer in writers:
            writer.write_table(table if name == "parquet" else table.cast(_csv_schema()))
        if progress is not None:
            progress(table.num_rows)
    for _, writer in writers:
        writer.close()


def _csv_schema() -> pa.Schema:
    # whole seconds print as 2019-01-31 23:59:59, without six zeros behind
    return pa.schema(
        [pa.field(f.name, pa.timestamp("s")) if pa.types.is_timestamp(f.type) else f for f in SCHEMA]
    )


def _pick(rng: np.random.Generator, n: int, weights: dict[int, float]) -> Ints:
    """``n`` values drawn by weight."""
    edges = np.cumsum(list(weights.values()))
    drawn = np.searchsorted(edges / edges[-1], rng.random(n), side="right")
    picked: Ints = np.array(list(weights), dtype=np.int64)[np.minimum(drawn, len(weights) - 1)]
    return picked


def _rare(rng: np.random.Generator, n: int, share: float) -> Bools:
    """A mask that is true for about ``share`` of the rows, and for at least one of them."""
    mask: Bools = rng.random(n) < share
    if n:
        mask[int(rng.integers(n))] = True
    return mask


def _zones(rng: np.random.Generator, n: int) -> Ints:
    # a power of a uniform number: a handful of zones get most of the trips
    rank = (rng.random(n) ** 2.5 * _ZONES).astype(np.int64)
    # ranks spread over the zone numbers by a step that shares no factor with their count
    zones: Ints = rank * 161 % _ZONES + 1
    return zones


def _times(rng: np.random.Generator, n: int, month: int, distance: Floats) -> tuple[Ints, Ints]:
    """Pick-up and drop-off in microseconds since 1970."""
    first = np.datetime64(f"2019-{month:02d}", "M")
    start = int(first.astype("datetime64[s]").astype(np.int64))
    days = int(((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64))
    hours = _pick(rng, n, dict(enumerate(_HOUR_WEIGHTS)))
    pickup = start + rng.integers(0, days, n) * 86_400 + hours * 3_600 + rng.integers(0, 3_600, n)
    # city speed between 6 and 18 miles an hour, plus a minute to get in and out
    speed = 6 + 12 * rng.random(n)
    duration = (np.abs(distance) / speed * 3_600).astype(np.int64) + rng.integers(20, 180, n)
    duration[_rare(rng, n, 0.002)] = 86_395  # meters that ran until the next day
    odd = _rare(rng, n, 0.0004)
    duration[odd] = -duration[odd]  # clocks that went backwards
    away = np.array(["2001-01-01", "2003-01-01", "2008-12-31", "2009-01-01", "2038-02-17", "2088-01-24"])
    away_seconds = away.astype("datetime64[s]").astype(np.int64)
    far = _rare(rng, n, 0.0003)
    pickup[far] = away_seconds[rng.integers(0, len(away), int(far.sum()))] + rng.integers(
        0, 86_400, int(far.sum())
    )
    return pickup * _MICROS, (pickup + duration) * _MICROS


def _trips(rng: np.random.Generator, month: int, n: int) -> pa.Table:
    vendor = _pick(rng, n, {1: 36.0, 2: 63.5, 4: 0.5})
    passengers = _pick(
        rng, n, {0: 1.8, 1: 70.0, 2: 15.0, 3: 4.2, 4: 2.0, 5: 4.2, 6: 2.7, 7: 0.004, 8: 0.003, 9: 0.003}
    )
    rate = _pick(rng, n, {1: 96.8, 2: 2.2, 3: 0.2, 4: 0.06, 5: 0.7, 6: 0.002, 99: 0.04})
    payment = _pick(rng, n, {1: 71.5, 2: 27.8, 3: 0.5, 4: 0.2, 5: 0.001})
    forwarded = _rare(rng, n, 0.006)

    # miles, in hundredths: mostly one to three, with a long tail; airport trips are far
    hundredths = np.floor(60 + 190 * -np.log1p(-rng.random(n)) * (0.4 + rng.random(n) ** 2 * 2)).astype(
        np.int64
    )
    hundredths[rate == 2] += 1_500
    hundredths[_rare(rng, n, 0.008)] = 0
    hundredths[_rare(rng, n, 0.00002)] = 1_913_018
    distance = hundredths / 100
    pickup, dropoff = _times(rng, n, month, np.minimum(distance, 60.0))

    # money in cents, so that sums of the parts are exact before they become doubles
    # 2.50 to start, 2.50 a mile
    fare = 250 + np.minimum(hundredths, 6_000) * 5 // 2 + rng.integers(0, 600, n)
    fare = np.where(rate == 2, 5_200, fare // 50 * 50)
    fare[_rare(rng, n, 0.0003)] = 0
    extra = _pick(rng, n, {0: 42.0, 50: 31.0, 100: 16.0, 250: 8.0, 300: 3.0})
    tax = np.where(rate == 5, 0, 50)
    tolls = np.where(_rare(rng, n, 0.045), 612, 0)
    surcharge = np.full(n, 30, dtype=np.int64)
    tip = np.where(
        payment == 1, fare * _pick(rng, n, {0: 6.0, 15: 14.0, 20: 50.0, 25: 22.0, 30: 8.0}) // 100, 0
    )
    # refunds take back every part of the bill
    refund = (payment >= 3) & (rng.random(n) < 0.4)
    sign = np.where(refund, -1, 1)
    fare, extra, tax, tolls, surcharge = (sign * part for part in (fare, extra, tax, tolls, surcharge))
    slipped = _rare(rng, n, 0.000001)  # a typing error
    fare[slipped] = fare[slipped] * 1_001 + 40_000_000
    total = fare + extra + tax + tip + tolls + surcharge

    # the TLC has no vendor, passengers, rate, flag or payment type for trips booked by telephone
    unknown = _rare(rng, n, 0.006)
    flags = pa.DictionaryArray.from_arrays(
        pa.array(forwarded.astype(np.int8), mask=unknown), pa.array(["N", "Y"])
    ).cast(pa.string())
    columns = [
        pa.array(vendor, mask=unknown),
        pa.array(pickup),
        pa.array(dropoff),
        pa.array(passengers, mask=unknown),
        pa.array(distance),
        pa.array(rate, mask=unknown),
        flags,
        pa.array(_zones(rng, n)),
        pa.array(_zones(rng, n)),
        pa.array(payment, mask=unknown),
        *(pa.array(cents / 100) for cents in (fare, extra, tax, tip, tolls, surcharge, total)),
    ]
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def main() -> None:
    """Command line: write the data and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.taxi", description="Make NYC-taxi-shaped data."
    )
    parser.add_argument("out", type=Path, help="directory to write below")
    parser.add_argument(
        "--rows", type=int, default=DEFAULT_ROWS, help="trips of the whole year (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=DEFAULT_SEED, help="seed of the random trips (%(default)s)"
    )
    parser.add_argument("--format", dest="formats", action="append", choices=FORMATS, help="only this format")
    arguments = parser.parse_args()
    if arguments.rows < 0:
        parser.error("--rows must not be negative")
    formats = tuple(arguments.formats or FORMATS)
    print(generate(arguments.out, arguments.rows, arguments.seed, formats))


if __name__ == "__main__":
    main()
