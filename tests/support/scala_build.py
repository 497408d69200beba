"""The Scala 2.13 build of Spark 3.5: PyPI's PySpark of that release has the JARs of the Scala 2.12 build.

Maven Central has the JARs of the other one, without Hive's and the shell's. With them beside PySpark's own scripts a directory is a
``SPARK_HOME``. ``mvn`` must be installed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kquery</groupId><artifactId>spark-home</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.spark</groupId><artifactId>spark-sql_2.13</artifactId><version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""


def spark_home(pyspark: Path, version: str, directory: Path) -> Path:
    """The ``SPARK_HOME`` of a version's Scala 2.13 build below ``directory``, made where there is none.

    pyspark: the directory of the PySpark package of the same version.
    """
    home = directory / f"spark-{version}-scala2.13"
    done = home / ".installed"
    if done.exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for scripts in ("bin", "sbin"):
        shutil.copytree(pyspark / scripts, home / scripts)
    pom = home / "pom.xml"
    pom.write_text(POM.format(version=version))
    print(f"copying the JARs of Spark {version} for Scala 2.13 into {home}", flush=True)
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={home / 'jars'}"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *copy], check=True)
    done.touch()
    return home
