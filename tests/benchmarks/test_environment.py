"""What benchmarks write down of a run holds no secrets."""

from __future__ import annotations

from benchmarks.environment import published_settings


def test_secrets_places_and_persons_are_left_out() -> None:
    settings = {
        "java": "17.0.1", "spark.sql.ansi.enabled": "true", "spark.kquery.parallelism": "2", "spark.master": "local[2]",
    }  # fmt: skip
    hidden = {
        "spark.hadoop.fs.s3a.secret.key": "S3CR3T", "spark.hadoop.fs.s3a.access.key": "AKIA",
        "spark.sql.catalog.prod.uri": "jdbc:postgresql:x", "spark.sql.catalog.prod.jdbc.password": "S3CR3T",
        "spark.sql.catalog.prod.warehouse": "s3a://K:S3CR3T@bucket/x", "spark.sql.catalog.prod.token": "S3CR3T",
        "spark.sql.catalog.prod.credential": "id:S3CR3T", "spark.master.rest": "spark://host:7077",
        "spark.sql.warehouse.dir": "/home/me", "spark.app.name": "me", "spark.sql.thing": "me@example",
        "spark.kquery.extra": "https://user:S3CR3T@host/",
    }  # fmt: skip
    assert published_settings({**settings, **hidden}) == dict(sorted(settings.items()))
