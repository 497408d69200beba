"""The worker cache: what it keeps, in which order it forgets, and that two threads build a value once."""

import threading
import time

from kquery_spark.physical.worker_cache import NotShared, WorkerCache


def built(log, key, size=10):
    def build():
        log.append(key)
        return key.upper(), size

    return build


def test_the_least_recently_used_value_goes_first():
    cache, log = WorkerCache(), []
    for key in ("a", "b", "a", "c"):
        assert cache.get(key, built(log, key), 20) == key.upper()
    assert log == ["a", "b", "c"]
    cache.get("a", built(log, "a"), 20)
    cache.get("b", built(log, "b"), 20)
    assert log == ["a", "b", "c", "b"]


def test_a_value_above_the_limit_stays_until_the_next_one():
    cache, log = WorkerCache(), []
    for key in ("a", "a", "b", "a"):
        cache.get(key, built(log, key, 100), 20)
    assert log == ["a", "b", "a"]


def test_a_limit_of_0_keeps_nothing():
    cache, log = WorkerCache(), []
    for _ in range(2):
        assert cache.get("a", built(log, "a", 0), 0) == "A"
        assert cache.get("b", built(log, "b", 10), 0) == "B"
    assert log == ["a", "b", "a", "b"]


def test_threads_that_ask_at_once_share_one_build():
    cache, log = WorkerCache(), []

    def build():
        log.append(threading.get_ident())
        time.sleep(0.05)
        return "value", 1

    threads = [threading.Thread(target=cache.get, args=("k", build, 10)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log) == 1


def test_threads_that_wait_for_a_value_that_is_not_shared_build_at_the_same_time():
    cache, waiting = WorkerCache(), threading.Barrier(2)
    first_is_building, end_first = threading.Event(), threading.Event()
    outcomes = []

    def first():
        first_is_building.set()
        end_first.wait(10)
        raise NotShared

    def other():
        waiting.wait(10)  # raises an error unless two threads are here at the same time
        raise NotShared

    def run(build):
        try:
            cache.get("k", build, 10)
        except Exception as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=run, args=(build,)) for build in (first, other, other)]
    threads[0].start()
    first_is_building.wait(10)
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.5)  # both wait for the first build
    end_first.set()
    for thread in threads:
        thread.join()
    assert outcomes == [NotShared] * 3
    assert cache.get("k", lambda: ("value", 1), 10) == "value"
