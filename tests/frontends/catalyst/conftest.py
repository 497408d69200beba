from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def zoo_dir(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with NULLs, NaN, -0.0, empty and non-ASCII strings; and a partitioned table with a NULL partition."""
    path = tmp_path_factory.mktemp("zoo")
    spark.sql(
        """select id, cast(if(id % 7 = 0, null, id % 13 - 5) as int) i,
          case when id % 11 = 0 then null when id % 11 = 1 then double('NaN') when id % 11 = 2 then -0.0D
               when id % 11 = 3 then 0.0D else id / 3.0D end d,
          cast(if(id % 5 = 0, null, id * 1.25) as decimal(7,2)) m,
          cast(id * 1000000007.1234 as decimal(20,4)) w,
          case when id % 6 = 0 then null when id % 6 = 1 then '' when id % 6 = 2 then 'abc'
               when id % 6 = 3 then 'Äö%_x' else concat('s', id % 9) end s,
          date_add(date'2020-01-30', cast(id % 50 as int)) day,
          timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(cast(id as int), 5, cast(id % 60 as int), 1.5) ts,
          id % 3 = 0 b from range(200)"""
    ).repartition(3).write.parquet(str(path / "t"))
    spark.sql(
        """select id, if(id % 9 = 8, null, cast(id % 4 as int)) k, cast(id % 3 as string) p,
          if(id % 5 = 0, null, date_add(date'2021-01-01', cast(id % 2 as int))) q from range(60)"""
    ).write.partitionBy("p", "q").parquet(str(path / "pt"))
    return path


@pytest.fixture
def zoo(spark: Any, zoo_dir: Path) -> Iterator[None]:
    """The views ``t`` and ``pt``."""
    for name in ("t", "pt"):
        spark.read.parquet(str(zoo_dir / name)).createOrReplaceTempView(name)
    yield
    for name in ("t", "pt"):
        spark.catalog.dropTempView(name)
