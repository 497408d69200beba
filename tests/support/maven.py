"""JARs from Maven that tests need, downloaded once and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

REPOSITORY = os.environ.get("MAVEN_REPOSITORY", "https://repo1.maven.org/maven2")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kquery_spark"
TIMEOUT_SECONDS = 60


class Unreachable(Exception):
    """The repository does not answer."""


def artifact(coordinates: str, classifier: str = "") -> Path | None:
    """The JAR of ``group:artifact:version``; None where the repository has none, Unreachable without a network."""
    group, name, version = coordinates.split(":")
    file = f"{name}-{version}{classifier and f'-{classifier}'}.jar"
    path = CACHE / file
    if path.exists():
        return path
    url = f"{REPOSITORY}/{group.replace('.', '/')}/{name}/{version}/{file}"
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, part.open("wb") as target:
            shutil.copyfileobj(response, target)
        part.replace(path)
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        raise Unreachable(f"{REPOSITORY} cannot be reached: {error}") from error
    return path
