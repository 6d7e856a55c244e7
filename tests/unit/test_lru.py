import threading

from pipeline.kernel.lru import LruCache


def always(_value):
    return True


def test_a_value_is_made_once_and_kept():
    cache, made = LruCache(2), []
    for _ in range(3):
        assert cache.get("a", always, lambda: made.append("a") or "value") == "value"
    assert made == ["a"]


def test_least_recently_used_value_is_evicted_first():
    cache = LruCache(2)
    for key in ("a", "b", "a", "c"):
        cache.get(key, always, lambda key=key: key)
    assert cache.values() == ["a", "c"]


def test_outdated_cache_value_is_computed_again():
    cache = LruCache(2)
    cache.get("a", always, lambda: 1)
    assert cache.get("a", lambda value: value == 2, lambda: 2) == 2
    assert cache.values() == [2]


def test_failed_computation_is_not_cached():
    cache = LruCache(2)
    for _ in range(2):
        try:
            cache.get("a", always, lambda: 1 / 0)
        except ZeroDivisionError:
            continue
        raise AssertionError
    assert cache.get("a", always, lambda: 1) == 1


def test_concurrent_requests_get_the_same_value():
    cache, start, found = LruCache(2), threading.Barrier(8), []

    def ask():
        start.wait()
        found.append(cache.get("a", always, object))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_slow_computation_does_not_block_cached_values():
    cache, making, go_on = LruCache(2), threading.Event(), threading.Event()
    cache.get("a", always, lambda: 1)

    def make():
        making.set()
        go_on.wait(30)
        return 2

    slow = threading.Thread(target=cache.get, args=("b", always, make))
    slow.start()
    making.wait(30)
    assert cache.get("a", always, lambda: 3) == 1
    go_on.set()
    slow.join()
    assert cache.values() == [1, 2]
