import threading
from concurrent.futures import ThreadPoolExecutor

from dsel.data.cache import GROUP_PREFIX, ByteCache, LastUseCache
from tests.clusters import wait_until


def test_get__forgets_the_oldest_use_first():
    cache, made = ByteCache(100), []

    def make(key):
        return cache.get(key, lambda: made.append(key) or bytes(40))

    for key in "abaca":
        make(key)
    assert made == ["a", "b", "c"]
    make("b")

    assert made == ["a", "b", "c", "b"]
    assert cache.held == 80

    cache.get("larger than the limit", lambda: bytes(101))
    assert cache.held == 80


def test_get__keeps_the_first_part_of_a_scan_that_does_not_fit():
    cache, made = ByteCache(100), []
    cache.get("kernel", lambda: bytes(50))
    for _ in range(2):
        for key in "abcd":
            cache.get(
                key, lambda key=key: made.append(key) or bytes(40), scan_name="pool"
            )
    assert made == ["a", "b", "c", "d", "c", "d"]


def test_get__makes_a_value_once_for_many_threads():
    cache, made, start = ByteCache(100), [], threading.Barrier(8)

    def ask(_):
        start.wait()
        cache.get("a", lambda: made.append(1) or bytes(10))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(8)))
    assert made == [1]


def test_get__drops_what_nobody_asked_for_in_a_while():
    cache = ByteCache(100, idle_seconds=0.5)
    for _ in range(2):  # the watch begins anew where the cache was empty
        cache.get("idle", lambda: bytes(10))
        assert cache.held == 10
        wait_until(lambda: cache.held == 0, what="idle values to be dropped")


def test_last_use__knows_what_is_the_groups_own():
    cache = ByteCache(100)
    ending = LastUseCache(cache)
    for key in ("rows", f"{GROUP_PREFIX}gram"):
        cache.get(key, lambda: bytes(40))
        ending.get(key, lambda: bytes(40))
    assert cache.held == 80
    cache.forget(ending.own_keys)
    assert cache.held == 40
