"""Generates the sources of the pipelines suite: wide orders and stores (CSV), clicks and a customer history (Parquet),
customers (JSON).

The same scale gives the same rows on every machine with the same numpy: only uniform random numbers are drawn, and
everything else is arithmetic. DuckDB writes the CSV and the JSON; pyarrow writes the Parquet files with Spark's timestamps.

The steps need these properties: some order lines are loaded twice; strings, decimals, and timestamps have NULLs; some
customers buy more than others; the clicks of a visit are a few minutes apart; attributes of customers change.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.pipelines import words
from benchmarks.suites.base import Table

Ints = npt.NDArray[np.int64]

ORDERS_AT_SCALE_1 = 10_000_000
CUSTOMERS_AT_SCALE_1 = 400_000
STORES = 200
_FILES = 8
_CHUNK_ROWS = 500_000
_VERSION = 1
_START_SECONDS = 1_735_689_600  # 2025-01-01 00:00:00 UTC
_DAYS = 90

ORDERS_DDL = (
    "load_id BIGINT, order_id BIGINT, line INT, customer_id BIGINT, store_id INT, product_id INT, sku STRING, "
    "product STRING, category STRING, brand STRING, status STRING, channel STRING, payment STRING, currency STRING, "
    "country STRING, city STRING, email STRING, phone STRING, ip STRING, note STRING, tags STRING, order_date STRING, "
    "ordered_at TIMESTAMP, shipped_at TIMESTAMP, updated_at TIMESTAMP, quantity INT, unit_price DECIMAL(10,2), "
    "discount DECIMAL(10,2), tax DECIMAL(10,2), total DECIMAL(12,2), rating DOUBLE, gift BOOLEAN"
)
CUSTOMERS_DDL = (
    "customer_id BIGINT, name STRUCT<first: STRING, last: STRING>, email STRING, "
    "address STRUCT<street: STRING, city: STRING, country: STRING, geo: STRUCT<lat: DOUBLE, lon: DOUBLE>>, "
    "interests ARRAY<STRING>, segment STRING, score DOUBLE, signup STRING"
)
STORES_DDL = "store_id INT, store STRING, region STRING, opened STRING"


def generate(directory: Path, scale: float) -> tuple[Table, ...]:
    """Write the sources at a scale below ``directory``, unless they are complete there; return their tables."""
    orders = max(1000, round(ORDERS_AT_SCALE_1 * scale))
    customers = max(50, round(CUSTOMERS_AT_SCALE_1 * scale))
    options = {"orders": orders, "customers": customers, "version": _VERSION}
    tables = (
        Table("orders", directory / "orders", "csv", ORDERS_DDL),
        Table("clicks", directory / "clicks"),
        Table("customers", directory / "customers", "json", CUSTOMERS_DDL),
        Table("stores", directory / "stores", "csv", STORES_DDL),
        Table("customer_history", directory / "customer_history"),
        Table("customer_changes", directory / "customer_changes"),
    )
    manifest = directory / "_made.json"
    if manifest.exists() and json.loads(manifest.read_text()) == options:
        return tables
    manifest.unlink(missing_ok=True)
    for table in tables:
        shutil.rmtree(table.path, ignore_errors=True)
        table.path.mkdir(parents=True)
    _write_csv_or_json(_stores(), directory / "stores" / "part-00000.csv")
    _write_customers(directory, customers)
    _write_history(directory, customers)
    for number, (start, stop) in enumerate(_ranges(orders, _FILES)):
        chunks = [_order_lines(a, b, customers) for a, b in _chunks(start, stop)]
        _write_csv_or_json(pa.concat_tables(chunks), directory / "orders" / f"part-{number:05d}.csv")
        chunks = [_clicks(a, b, customers) for a, b in _chunks(start, stop)]
        _write_parquet(pa.concat_tables(chunks), directory / "clicks" / f"part-{number:05d}.snappy.parquet")
    # written last, so that an interrupted run leaves no manifest and the next run generates everything again
    manifest.write_text(json.dumps(options) + "\n")
    return tables


def _ranges(rows: int, parts: int) -> list[tuple[int, int]]:
    edges = [rows * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def _chunks(start: int, stop: int) -> list[tuple[int, int]]:
    return [(a, min(a + _CHUNK_ROWS, stop)) for a in range(start, stop, _CHUNK_ROWS)]


def _write_csv_or_json(table: pa.Table, path: Path) -> None:
    """Write one CSV file with a header, or one file with a JSON object per line, as the suffix of ``path`` says."""
    import duckdb

    options = "FORMAT csv, HEADER true" if path.suffix == ".csv" else "FORMAT json"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("source", table)
        connection.execute(f"COPY source TO '{path}' ({options})")


def _write_parquet(table: pa.Table, path: Path) -> None:
    """Write a file as Spark does by default: with Snappy compression and INT96 timestamps."""
    pq.write_table(table, path, compression="snappy", use_deprecated_int96_timestamps=True)
    (path.parent / "_SUCCESS").touch()


# --- Columns ---------------------------------------------------------------------------------------------------------


def _select(indices: Ints, values: Sequence[str], nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return the strings of ``values`` at ``indices``, and NULL where ``nulls`` is true."""
    nullable_indices = pa.array(indices.astype(np.int32), mask=nulls)
    return pa.DictionaryArray.from_arrays(nullable_indices, pa.array(values)).cast(pa.string())


def _decimal(cents: Ints, precision: int, nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return ``cents``, which must not be negative, as ``decimal(precision, 2)``."""
    low_and_high_words = np.zeros((len(cents), 2), dtype=np.int64)
    low_and_high_words[:, 0] = cents
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(
        pa.decimal128(precision, 2), len(cents), [valid, pa.py_buffer(low_and_high_words)]
    )


def _time(seconds: Ints, nulls: npt.NDArray[np.bool_] | None = None, zone: str | None = None) -> pa.Array:
    return pa.array(seconds * 1_000_000, mask=nulls).cast(pa.timestamp("us", zone))


def _string(numbers: Ints, width: int = 0) -> pa.Array:
    """Return the decimal digits of ``numbers``, with leading zeros up to ``width``."""
    plain = pa.array(numbers).cast(pa.string())
    return pc.utf8_lpad(plain, width, "0") if width else plain


def _join(*parts: Any) -> pa.Array:
    """Concatenate the strings of each row."""
    return pc.binary_join_element_wise(*parts, "")


def _mix(numbers: Ints, modulus: int) -> Ints:
    """Hash each of ``numbers`` to a number below ``modulus``: equal numbers get equal results in every table and chunk."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> np.uint64(16)) % np.uint64(modulus)).astype(np.int64)


# --- Tables ----------------------------------------------------------------------------------------------------------


def _order_lines(start: int, stop: int, customers: int) -> pa.Table:
    n = stop - start
    rng = np.random.default_rng([61, start])
    load_id = np.arange(start, stop)
    # a tenth of the rows load an earlier order line again, with newly drawn values such as status and quantity
    repeated = (rng.random(n) < 0.1) & (load_id > 0)
    line_number = np.where(repeated, rng.integers(0, np.maximum(load_id, 1)), load_id)
    order_id, line = line_number // 3, line_number % 3 + 1
    fraction = _mix(order_id * 2 + 1, 1_000_003) / 1_000_003
    customer_id = (fraction**1.5 * customers).astype(np.int64) + 1
    product_id = _mix(line_number * 5 + 2, 5_000)
    country = _mix(customer_id, len(words.COUNTRIES))
    ordered = _START_SECONDS + _mix(order_id * 7 + 3, _DAYS * 86_400)
    quantity = rng.integers(1, 10, n)
    price = 199 + product_id * 37 % 20_000
    discounted = rng.random(n) < 0.3
    discount = np.where(discounted, price * quantity // 10, 0)
    tax = (price * quantity - discount) // 5
    day_numbers = ((ordered - _START_SECONDS) // 86_400).astype(np.int64)
    ip = [_string(_mix(customer_id * 11 + part, 254) + 1) for part in range(4)]
    dot = pa.scalar(".")
    drawn_words = [rng.integers(0, len(words.WORDS), n) for _ in range(6)]
    space, bar = pa.scalar(" "), pa.scalar("|")
    note = [_select(indices, words.WORDS) for indices in drawn_words]
    tags = [_select(indices % len(words.TAGS), words.TAGS) for indices in drawn_words[:3]]
    no_note = rng.random(n) < 0.2
    columns = {
        "load_id": load_id,
        "order_id": order_id,
        "line": pa.array(line, pa.int32()),
        "customer_id": pa.array(customer_id, mask=rng.random(n) < 0.01),
        "store_id": pa.array(_mix(order_id * 13 + 5, STORES) + 1, pa.int32()),
        "product_id": pa.array(product_id, pa.int32()),
        "sku": _join("SKU-", _string(product_id, 6)),
        "product": _join(_select(product_id % len(words.WORDS), words.WORDS), " ", _string(product_id)),
        "category": _select(product_id % len(words.CATEGORIES), words.CATEGORIES),
        "brand": _select(product_id % len(words.BRANDS), words.BRANDS),
        "status": _select(rng.integers(0, len(words.STATUSES), n), words.STATUSES),
        "channel": _select(rng.integers(0, len(words.CHANNELS), n), words.CHANNELS),
        "payment": _select(rng.integers(0, len(words.PAYMENTS), n), words.PAYMENTS, rng.random(n) < 0.02),
        "currency": _select(country % 3, ("EUR", "USD", "GBP")),
        "country": _select(country, words.COUNTRIES),
        "city": _select(_mix(customer_id * 3, len(words.CITIES)), words.CITIES),
        "email": _join("user", _string(customer_id), "@", _select(customer_id % 8, words.DOMAINS)),
        "phone": _join("+", _string(country + 30), " (0)", _string(_mix(customer_id, 900) + 100), "-",
                       _string(_mix(customer_id * 17, 10**6), 6)),
        "ip": _join(ip[0], dot, ip[1], dot, ip[2], dot, ip[3]),
        "note": pc.if_else(pa.array(no_note), pa.scalar(None, pa.string()),
                           _join(note[0], space, note[1], ", ", note[2], space, note[3], space, note[4])),
        "tags": _join(tags[0], bar, tags[1], bar, tags[2]),
        "order_date": _select(day_numbers, _dates()),
        "ordered_at": _time(ordered),
        "shipped_at": _time(ordered + rng.integers(3_600, 500_000, n), rng.random(n) < 0.15),
        "updated_at": _time(ordered + rng.integers(0, 40, n) * 86_400),
        "quantity": pa.array(quantity, pa.int32()),
        "unit_price": _decimal(price, 10),
        "discount": _decimal(discount, 10, ~discounted),
        "tax": _decimal(tax, 10),
        "total": _decimal(price * quantity - discount + tax, 12),
        "rating": pa.array(rng.integers(2, 11, n) / 2, mask=rng.random(n) < 0.4),
        "gift": pa.array(rng.random(n) < 0.05),
    }  # fmt: skip
    return pa.table(columns)


def _dates() -> list[str]:
    """Return the dates of all days as dd/MM/yyyy."""
    first = np.datetime64("2025-01-01")
    days = [str(first + day).split("-") for day in range(_DAYS)]
    return [f"{day}/{month}/{year}" for year, month, day in days]


def _clicks(start: int, stop: int, customers: int) -> pa.Table:
    n = stop - start
    rng = np.random.default_rng([62, start])
    customer_id = (rng.random(n) ** 1.2 * customers).astype(np.int64) + 1
    # each customer has eight visits; a visit's clicks are within half a day, and most are minutes apart
    visit = rng.integers(0, 8, n)
    begin = _mix(customer_id * 8 + visit, (_DAYS - 1) * 86_400)
    seconds = _START_SECONDS + begin + (rng.random(n) ** 3 * 40_000).astype(np.int64)
    page = rng.integers(0, 2_000, n)
    event = rng.integers(0, len(words.EVENTS), n)
    columns = {
        "click_id": np.arange(start, stop),
        "customer_id": pa.array(customer_id),
        "clicked_at": _time(seconds, zone="UTC"),
        "event": _select(event, words.EVENTS),
        "url": _join("https://shop.example/", _select(page % len(words.CATEGORIES), words.CATEGORIES),
                     "/", _string(page), "?ref=", _string(rng.integers(0, 50, n))),
        "referrer": _select(rng.integers(0, 8, n), words.DOMAINS, rng.random(n) < 0.5),
        "device": _select(rng.integers(0, len(words.DEVICES), n), words.DEVICES),
        "country": _select(_mix(customer_id, len(words.COUNTRIES)), words.COUNTRIES),
        "duration_ms": pa.array(rng.integers(10, 60_000, n), pa.int32(), mask=rng.random(n) < 0.05),
        "scroll": pa.array(rng.integers(0, 101, n) / 100, mask=rng.random(n) < 0.1),
        "revenue": _decimal(np.where(event == 3, rng.integers(100, 50_000, n), 0), 10, event != 3),
    }  # fmt: skip
    return pa.table(columns)


def _stores() -> pa.Table:
    store_id = np.arange(1, STORES + 1)
    opened = _select(_mix(store_id * 3, _DAYS), _dates())
    return pa.table(
        {
            "store_id": pa.array(store_id, pa.int32()),
            "store": _join("Store ", _string(store_id)),
            "region": _select(_mix(store_id, len(words.REGIONS)), words.REGIONS),
            "opened": opened,
        }
    )


def _write_customers(directory: Path, customers: int) -> None:
    for number, (start, stop) in enumerate(_ranges(customers, 4)):
        _write_csv_or_json(_customers(start, stop), directory / "customers" / f"part-{number:05d}.json")


def _customers(start: int, stop: int) -> pa.Table:
    n = stop - start
    rng = np.random.default_rng([63, start])
    customer_id = np.arange(start + 1, stop + 1)
    country = _select(_mix(customer_id, len(words.COUNTRIES)), words.COUNTRIES)
    city = _select(_mix(customer_id * 3, len(words.CITIES)), words.CITIES)
    name = [
        _select(rng.integers(0, len(words.FIRST_NAMES), n), words.FIRST_NAMES),
        _select(rng.integers(0, len(words.LAST_NAMES), n), words.LAST_NAMES),
    ]
    geo = [rng.integers(-9_000, 9_000, n) / 100, rng.integers(-18_000, 18_000, n) / 100]
    street = _join(_string(rng.integers(1, 200, n)), " ", name[1], " Street")
    position = pa.StructArray.from_arrays([pa.array(part) for part in geo], ["lat", "lon"])
    address = [street, city, country, position]
    lengths = rng.integers(0, 5, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    interests = _select(rng.integers(0, len(words.CATEGORIES), int(offsets[-1])), words.CATEGORIES)
    columns = {
        "customer_id": customer_id,
        "name": pa.StructArray.from_arrays(name, ["first", "last"]),
        "email": _join("user", _string(customer_id), "@", _select(customer_id % 8, words.DOMAINS)),
        "address": pa.StructArray.from_arrays(address, ["street", "city", "country", "geo"]),
        "interests": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), interests),
        "segment": _select(rng.integers(0, len(words.SEGMENTS), n), words.SEGMENTS, rng.random(n) < 0.05),
        "score": pa.array(rng.integers(0, 1_000, n) / 10, mask=rng.random(n) < 0.1),
        "signup": _select(rng.integers(0, _DAYS, n), _dates()),
    }
    return pa.table(columns)


def _write_history(directory: Path, customers: int) -> None:
    """Write each customer's current row, an older row of every fourth, and changes of every tenth and of new customers."""
    current = np.arange(1, customers + 1)
    older = current[current % 4 == 0]
    history = pa.concat_tables([_versions(current, 1, True), _versions(older, 0, False)])
    half = len(history) // 2
    for number, part in enumerate((history[:half], history[half:])):
        _write_parquet(part, directory / "customer_history" / f"part-{number:05d}.snappy.parquet")
    changed = np.concatenate([current[current % 10 == 3], customers + np.arange(1, customers // 40 + 2)])
    rows = _versions(changed, 2, True).drop_columns(["valid_from", "valid_to", "is_current"])
    changed_at = _time(_START_SECONDS + 86_400 * _DAYS + _mix(changed, 86_400), zone="UTC")
    _write_parquet(
        rows.append_column("changed_at", changed_at),
        directory / "customer_changes" / "part-00000.snappy.parquet",
    )


def _versions(customer_id: Ints, version: int, is_current: bool) -> pa.Table:
    """Return a row of the given version for each customer.

    Version 0 is the older row, 1 the current one, 2 a change. Half of the changes repeat the attributes of the current row.
    """
    seed = np.where(
        (customer_id % 20 == 3) & (version == 2), customer_id * 31 + 1, customer_id * 31 + version
    )
    begins = _START_SECONDS + version * 86_400 * 30 - 86_400 * 300 + _mix(customer_id, 86_400)
    ends = _START_SECONDS + 86_400 * 30 - 86_400 * 300 + _mix(customer_id, 86_400)
    n = len(customer_id)
    return pa.table(
        {
            "customer_id": customer_id,
            "city": _select(_mix(seed, len(words.CITIES)), words.CITIES),
            "country": _select(_mix(customer_id, len(words.COUNTRIES)), words.COUNTRIES),
            "segment": _select(_mix(seed * 3, len(words.SEGMENTS)), words.SEGMENTS, _mix(seed, 30) == 0),
            "credit_limit": _decimal(_mix(seed * 5, 1_000_000), 12),
            "valid_from": _time(begins, zone="UTC"),
            "valid_to": _time(ends, np.full(n, is_current), zone="UTC"),
            "is_current": pa.array(np.full(n, is_current)),
        }
    )
