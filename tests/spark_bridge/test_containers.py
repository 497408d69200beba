"""What the settings of Spark say of executors' memory."""

import pytest

from kquery_spark.config.memory import ContainerFacts
from kquery_spark.spark_bridge.session.containers import container_facts, container_facts_from_settings

MB, GB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("master", "settings", "facts"),
    [
        ("local[3]", {"spark.driver.memory": "2g"}, ContainerFacts(3, 2 * GB)),
        ("local-cluster[2,4,2048]", {"spark.task.cpus": "2"}, ContainerFacts(2, GB)),
        ("k8s://https://host", {"spark.executor.memory": "4g", "spark.executor.cores": "5"}, ContainerFacts(5, 4 * GB)),
        ("yarn", {}, ContainerFacts(1, GB, GB + 384 * MB)),
        ("yarn", {"spark.executor.memory": "8192"}, ContainerFacts(1, 8 * GB, 8 * GB + 8 * GB // 10)),
        (
            "yarn",
            {
                "spark.executor.memoryOverhead": "512",
                "spark.executor.pyspark.memory": "2g",
                "spark.memory.offHeap.enabled": "true",
                "spark.memory.offHeap.size": "1g",
            },
            ContainerFacts(1, 2 * GB, 4 * GB + 512 * MB),
        ),
        ("yarn", {"spark.executor.memoryOverheadFactor": "0.5"}, ContainerFacts(1, GB, GB + 512 * MB)),
        ("spark://host:7077", {"spark.executor.memory": "512m"}, ContainerFacts(1, 512 * MB)),
    ],
)  # fmt: skip
def test_facts_of_settings(master, settings, facts):
    assert container_facts_from_settings(settings, master, 3) == facts


def test_facts_of_the_session(spark):
    assert container_facts(spark.sparkContext) == ContainerFacts(2, 2 * GB)
