"""Hadoop's settings of HDFS: those that the engine applies, and those for which a table falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature, SourceSection
from kquery_spark.sources.hadoop.hdfs import INSTALL

NO_CLIENT = Feature(
    "no package `hdfs-native`",
    reason=f"files of hdfs: are not supported, because {{where}} does not have the package hdfs-native; {INSTALL}",
)
SECURE_CLUSTER = Feature(
    "settings of Kerberos that came after the JVM's first login, other ways to log in",
    reason="files of hdfs: are not supported while hadoop.security.authentication is {method}",
)
NO_LOGIN = Feature(
    "a local Spark whose Python has no tickets, as with a keytab only",
    reason="files of hdfs: are not supported, because {user} has no tickets in the cache that kinit fills",
)
NO_TOKEN = Feature(
    "workers on other machines without delegation tokens of Spark's, as in standalone clusters",
    reason="files of hdfs: are not supported without a delegation token for {authority}",
)
OTHER_USER = Feature(
    "a user of Hadoop's that is not the driver's: a proxy user, a login of the program's own",
    reason="files of hdfs: are not supported, because Spark reads them as {user}, and the engine would read them as {own}",
)
ENCRYPTED_FILES = Feature(
    "encryption zones",
    reason="files of hdfs: are not supported, because {directory} is in an encryption zone",
)
OTHER_SETTING = Feature(
    "other proxy providers of name services, other socket factories, another class for `fs.hdfs.impl`",
    reason="files of hdfs: are not supported while {setting} is {value}",
)
UNREACHABLE = Feature(
    "a cluster that Hadoop's client does not reach",
    reason="files of hdfs: are not supported, because Hadoop cannot reach {authority}: {error}",
)
OTHER_MOUNTS = Feature(
    "mount tables with other entries: `linkMergeSlash`, `linkNfly`, `linkRegex`",
    reason="files of viewfs: are not supported while the mount table {table} has the entry {entry}",
)
UNMOUNTED = Feature(
    "paths of `viewfs:` at which nothing is mounted",
    reason="files of viewfs: are not supported, because nothing is mounted at {path}",
)


HDFS = SourceSection(
    title="HDFS",
    introduction=f"""\
`hdfs://` is read by [`hdfs-native`](https://pypi.org/project/hdfs-native), an HDFS client without a JVM, if it is installed
for the driver and for Spark's Python workers: `{INSTALL}`. It uses the session's Hadoop settings, on
the workers as well. These settings are supported, or make a table fall back to Spark:""",
    features=(
        Feature("a name node by its address", "port 8020 where the path has none"),
        Feature(
            "name services of several name nodes",
            "`dfs.ha.namenodes.*`, `dfs.namenode.rpc-address.*`, `dfs.client.failover.*`",
        ),
        Feature(
            "`dfs.client.failover.proxy.provider.*`",
            "ConfiguredFailover, ObserverRead and RouterObserverReadConfiguredFailover",
        ),
        Feature("`dfs.client.use.datanode.hostname`"),
        Feature("`dfs.encrypt.data.transfer`", "as the cluster asks for it"),
        Feature("`hadoop.security.authentication` simple", "as the driver's user, also in the workers"),
        Feature(
            "`hadoop.security.authentication` Kerberos",
            "by the delegation tokens that Spark gets on YARN and Kubernetes, in the driver and the workers, also where the "
            "driver has a keytab only; a local Spark by its tickets (`kinit`, MIT's `libgssapi_krb5`)",
        ),
        Feature(
            "`viewfs://`: `fs.viewfs.mounttable.*`",
            "`link` and `linkFallback`; what is mounted is read as on its own filesystem",
        ),
        NO_CLIENT,
        SECURE_CLUSTER,
        NO_LOGIN,
        NO_TOKEN,
        OTHER_USER,
        ENCRYPTED_FILES,
        OTHER_SETTING,
        UNREACHABLE,
        OTHER_MOUNTS,
        UNMOUNTED,
    ),
    closing="""\
The limits for many files of object stores also apply to HDFS. If a file was replaced or appended to after the query was
planned, or if a task cannot read it, Spark runs the query again. A task reads each block from the nearest data node, but the
engine does not ask Spark to run tasks on executors that are close to their blocks.

Workers receive delegation tokens in the same way as the credentials of object stores. The engine requests no tokens of its
own. Workers and the driver hold the tokens in a file in memory, to which `HADOOP_TOKEN_FILE_LOCATION` points while they
connect to the cluster.

A context without Spark uses the settings in `HADOOP_CONF_DIR`, or those in `storage_options`:

```python
ctx = kq.ExecutionContext()
ctx.register_parquet(
    "trips",
    "hdfs://cluster/trips",
    storage_options={
        "dfs.ha.namenodes.cluster": "a,b",
        "dfs.namenode.rpc-address.cluster.a": "name-node-a:8020",
        "dfs.namenode.rpc-address.cluster.b": "name-node-b:8020",
    },
)
```""",
)
