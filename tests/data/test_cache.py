import threading
import weakref
from types import SimpleNamespace

import numpy as np
from scipy import sparse

from dsel.data.cache import OWN, ByteCache, LastUse, nbytes_of


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
            cache.get(key, lambda key=key: made.append(key) or bytes(40), group="pool")

    assert made == ["a", "b", "c", "d", "c", "d"]


def test_get__makes_a_value_once_for_many_threads():
    cache, made, start = ByteCache(100), [], threading.Barrier(8)

    def ask():
        start.wait()
        cache.get("a", lambda: made.append(1) or bytes(10))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == [1]


class Clock:
    """A clock that tests move on, with its alarms."""

    def __init__(self):
        self.now, self.alarms = 0.0, []

    def monotonic(self):
        return self.now

    def alarm(self, seconds, ring):
        at = self.now + seconds
        return SimpleNamespace(start=lambda: self.alarms.append((at, ring)))

    def move_to(self, now):
        due = [ring for at, ring in self.alarms if at <= now]
        self.alarms = [(at, ring) for at, ring in self.alarms if at > now]
        self.now = now
        for ring in due:
            ring()


def test_get__drops_what_nobody_asked_for_in_a_while(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("dsel.data.cache.time", clock)
    monkeypatch.setattr("dsel.data.cache.threading.Timer", clock.alarm)
    cache = ByteCache(100, idle_seconds=10)
    cache.get("idle", lambda: bytes(10))
    cache.get("used", lambda: bytes(20))

    clock.move_to(8)
    cache.get("used", lambda: bytes(20))
    clock.move_to(11)
    assert cache.held == 20
    clock.move_to(22)
    assert cache.held == 0
    assert not clock.alarms

    cache.get("again", lambda: bytes(30))
    clock.move_to(33)
    assert cache.held == 0


def test_get__keeps_nothing_for_a_cache_that_is_gone():
    cache = ByteCache(100, idle_seconds=600)
    value = weakref.ref(cache.get("held", lambda: np.zeros(10)))

    del cache

    assert value() is None


def test_nbytes_of__counts_each_array_once():
    values = [np.zeros(3), {"a": np.zeros(2)}, sparse.csr_matrix(np.eye(4))]
    values.append(values)

    assert nbytes_of([values, values]) == 40 + 4 * 8 + 4 * 4 + 5 * 4


def test_last_use__knows_what_is_the_groups_own():
    cache = ByteCache(100)
    ending = LastUse(cache)

    for key in ("rows", f"{OWN}gram"):
        cache.get(key, lambda: bytes(40))
        ending.get(key, lambda: bytes(40))
    assert cache.held == 80
    cache.forget(ending.own_keys)

    assert cache.held == 40
