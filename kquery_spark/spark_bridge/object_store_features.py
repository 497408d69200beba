"""Hadoop's settings of object stores: those that the engine applies, and those that leave a table to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature, SourceSection

OTHER_FILESYSTEM = Feature(
    "other filesystems: `gs://`, `abfss://`, `viewfs://` and all others",
    reason="files of the filesystem {scheme}: are read by Spark",
)
OTHER_PROVIDER = Feature(
    "any other provider of credentials",
    reason="files of s3a: are read by Spark, as only Spark has the credentials of {provider}",
)
NO_CREDENTIALS = Feature(
    "no credentials at all",
    reason="files of s3a: are read by Spark, as no provider of credentials has any",
)
ROLE_BY_KEYS = Feature(
    "`fs.s3a.assumed.role.*` with keys or a policy",
    reason="files of s3a: are read by Spark, as it assumes a role by keys or with a policy",
)
PROXY_USER = Feature(
    "a proxy that asks for a user",
    reason="files of s3a: are read by Spark while its proxy asks for a user",
)
HARMFUL_SETTING = Feature(
    "client-side encryption, `SSE-C`, requester pays, access points, signers, delegation tokens",
    reason="files of s3a: are read by Spark while {setting} is {value}",
)

OBJECT_STORES = SourceSection(
    title="Object stores",
    introduction="""\
`s3a://` (and `s3://` where `fs.s3.impl` is Hadoop's `S3AFileSystem`) is read by Arrow's own filesystem, as the
session's Hadoop settings say, those of a bucket (`fs.s3a.bucket.NAME.*`) first. Settings and what follows them:""",
    features=(
        Feature("`fs.s3a.endpoint`, `endpoint.region`, `path.style.access`, `connection.ssl.enabled`"),
        Feature("`fs.s3a.access.key`, `secret.key`, `session.token`", "also from Hadoop's credential stores"),
        Feature(
            "`fs.s3a.aws.credentials.provider`",
            "simple, temporary and anonymous ones, environment, profile, instance, container, web identity",
        ),
        Feature("`fs.s3a.assumed.role.*`", "where AWS's default credentials assume the role"),
        Feature("`fs.s3a.proxy.host`, `proxy.port`"),
        OTHER_PROVIDER,
        NO_CREDENTIALS,
        ROLE_BY_KEYS,
        PROXY_USER,
        HARMFUL_SETTING,
        OTHER_FILESYSTEM,
    ),
    closing="""\
Up to 500 files of a table: the driver fetches their footers, 32 at a time, while it plans; of more files Spark reads
the table.

A file that is replaced while a query reads it is an error, as with Spark. Credentials travel to workers inside the
pickled function that they run, next to the plan and not in it; `kq.explain`, Spark's plans and its event log do not
show them.

A context without Spark reads what Arrow has a filesystem for:

```python
ctx = kq.ExecutionContext()
ctx.register_parquet(
    "trips",
    "s3://bucket/trips",
    storage_options={
        "aws_access_key_id": "...",
        "aws_secret_access_key": "...",
        "aws_region": "eu-central-1",
    },
)
```""",
)
