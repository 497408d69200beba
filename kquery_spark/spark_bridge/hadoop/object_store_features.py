"""Hadoop's settings of object stores: those that the engine applies, and those for which a table falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature, SourceSection

OTHER_FILESYSTEM = Feature(
    "other filesystems: `wasbs://`, `webhdfs://` and all others",
    reason="files of the filesystem {scheme}: are not supported",
)
HARMFUL_SETTING = Feature(
    "client-side encryption, customer-supplied keys, requester pays, access points, signers, delegation tokens, "
    "a proxy of `gs:`",
    reason="files of {scheme}: are not supported while {setting} is {value}",
)

OTHER_PROVIDER = Feature(
    "any other provider of credentials",
    reason="files of s3a: are not supported with the credentials of {provider}",
)
NO_CREDENTIALS = Feature(
    "no credentials at all",
    reason="files of s3a: are not supported, because no credentials provider has credentials",
)
ROLE_BY_KEYS = Feature(
    "`fs.s3a.assumed.role.*` with keys or a policy",
    reason="files of s3a: are not supported if a role is assumed with keys or a policy",
)
PROXY_USER = Feature(
    "a proxy that asks for a user",
    reason="files of s3a: are not supported while the proxy requires a user",
)

GOOGLE_CREDENTIALS = Feature(
    "`fs.gs.auth.*`: access token providers, user credentials, P12 files, private keys among the settings",
    reason="files of gs: are not supported with the credentials of {kind}",
)
AMBIGUOUS_CREDENTIALS = Feature(
    "`fs.gs.auth.*` of two releases of the connector that contradict each other",
    reason="files of gs: are not supported while fs.gs.auth.type and fs.gs.auth.service.account.* differ",
)
MACHINE_ACCOUNT = Feature(
    "`fs.gs.auth.type` of `COMPUTE_ENGINE` beside a file of credentials",
    reason="files of gs: are not supported with the machine's account, because Arrow would use a credentials file; set "
    "fs.gs.auth.type to APPLICATION_DEFAULT to use the file",
)
IMPERSONATION_BY_USER = Feature(
    "`fs.gs.auth.impersonation.service.account.for.*`",
    reason="files of gs: are not supported while the service account depends on the user or the group",
)
HTTP_HEADERS = Feature(
    "`fs.gs.storage.http.headers.*`",
    reason="files of gs: are not supported while fs.gs.storage.http.headers.* are set",
)

AZURE_CREDENTIALS = Feature(
    "`fs.azure.account.auth.type` of `Custom`, and other providers of keys and tokens",
    reason="files of abfss: are not supported with the credentials of {kind}",
)
AZURE_NO_CREDENTIALS = Feature(
    "no account key",
    reason="files of abfss: are not supported without fs.azure.account.key for the account",
)
AZURE_ACCOUNT = Feature(
    "a path without its account",
    reason="files of abfss: are not supported if the path does not name the account",
)
AZURE_OLD_ARROW = Feature(
    "a pyarrow without a filesystem of Azure's",
    reason="files of abfss: are not supported by this version of pyarrow; install a newer one",
)
AZURE_OTHER_IDENTITY = Feature(
    "`MsiTokenProvider` without a client where `AZURE_*` variables or `az` give other credentials",
    reason="files of abfss: are not supported with the machine's identity, because Arrow would use another one",
)

OBJECT_STORES = SourceSection(
    title="Object stores",
    introduction="""\
Amazon S3 (`s3a://`, and `s3://` where `fs.s3.impl` is Hadoop's `S3AFileSystem`), Google Cloud Storage (`gs://` by Google's
connector, or by Hadoop's own, the default of Spark 4.3) and Azure (`abfss://`, `abfs://`) are read by Arrow's own
filesystems, with the session's Hadoop settings. Settings of a bucket, a container, or an account override the general ones.
These settings are supported, or make a table fall back to Spark:""",
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
        Feature("`fs.gs.storage.root.url`", "of Google's connector; Hadoop's does not know it"),
        Feature(
            "`fs.gs.auth.type`",
            "`COMPUTE_ENGINE`, `APPLICATION_DEFAULT`, `SERVICE_ACCOUNT_JSON_KEYFILE`, `UNAUTHENTICATED`; also as the "
            "connector's release 2 (`auth.service.account.enable`, `auth.null.enable`) and `google.cloud.*` put it",
        ),
        Feature(
            "`fs.gs.auth.impersonation.service.account`", "of Google's connector; Hadoop's does not know it"
        ),
        GOOGLE_CREDENTIALS,
        AMBIGUOUS_CREDENTIALS,
        MACHINE_ACCOUNT,
        IMPERSONATION_BY_USER,
        HTTP_HEADERS,
        Feature("`fs.azure.account.key`", "also from Hadoop's credential stores"),
        Feature("`fs.azure.sas.fixed.token`"),
        Feature(
            "`fs.azure.account.oauth.provider.type`",
            "`ClientCredsTokenProvider` at `login.microsoftonline.com`, `MsiTokenProvider`",
        ),
        Feature("`fs.azure.abfs.endpoint`, `fs.azure.always.use.https`"),
        AZURE_CREDENTIALS,
        AZURE_NO_CREDENTIALS,
        AZURE_ACCOUNT,
        AZURE_OLD_ARROW,
        AZURE_OTHER_IDENTITY,
        HARMFUL_SETTING,
        OTHER_FILESYSTEM,
    ),
    closing="""\
During planning, the driver prunes files by partition columns, fetches the footers of the remaining files (32 at a time), and
caches up to 256 MB of footers. The engine reads more than 500 files only if they are Parquet files with an average size of
at least 2 MB times the number of tasks that run at once (64 MB with 32 cores). Otherwise the table falls back to Spark.

For Parquet and ORC files, a task requests all columns that it needs of a row group or stripe together, in up to 32
concurrent requests of up to 16 MB. While it decodes one row group, it prefetches the next one that statistics do not rule
out, which may be in the next file: up to 64 MB of its columns, and the positions of its deleted rows. If row groups
or stripes are small, it prefetches up to eight of them, and decodes up to four row groups of a Parquet file together. For
large row groups of Parquet files, it reads the page index first, if there is one, and then fetches only the pages that may
have rows which pass the conditions. An ORC file of up to 4 MB is fetched completely when its first stripe is read, and so
is a stripe of up to 1 MB. CSV and JSON files are prefetched up to 24 MB ahead, in requests of 4 MB.

If a request, with its retries, takes longer than `spark.kquery.requestSeconds` (60 by default), an error names the object,
the limit, and the setting, and Spark runs the query. So a server that sends a few bytes per second cannot block a task. The
limit applies to the process; in a context without Spark, it is `EngineConfig(request_seconds=...)`. Arrow cannot cancel the
request itself: a process that ends while the server is still sending waits for the request.

Replacing a file while a query reads it is an error, as in Spark, and so is reading an object that Google's store keeps
compressed (`Content-Encoding: gzip`). Workers receive the credentials in the pickled function that they run, not in the
plan, so `kq.explain`, Spark's plans, and its event log do not show them.

A context without Spark reads all stores for which Arrow has a filesystem:

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
ctx.register_parquet(
    "stops", "gs://bucket/stops", storage_options={"google_service_account": "/path/of/key-file"}
)
ctx.register_parquet(
    "fares",
    "abfss://container@account.dfs.core.windows.net/fares",
    storage_options={"azure_storage_account_key": "..."},
)
```

| store | `storage_options`, also under the names of `pyarrow.fs`'s arguments |
|---|---|
| S3 | `aws_access_key_id`, `aws_secret_access_key`, `aws_session_token`, `aws_region`, `aws_endpoint_url` |
| Google | `google_service_account` (the path of a key file), `token` as `gcsfs` has it, `anonymous`, `access_token`, \
`target_service_account`, `endpoint_url` |
| Azure | `azure_storage_account_name`, `azure_storage_account_key`, `azure_storage_sas_token`, `azure_client_id`, \
`azure_client_secret`, `azure_tenant_id`, `azure_endpoint`, `use_emulator` |

Without `storage_options` the default credentials of each store's own tools are used.""",
)
