"""The caches of the tests."""

import numpy as np


def values(number):
    """Arrays that have most of their pages in common."""
    array = np.random.default_rng(1).standard_normal(1 << 18)
    array[number] = number
    return array


def opened(door, path):
    """A function that puts a number's values into a cache, or gets what it has; and the cache."""
    if door == "diskcache":
        import diskcache

        from vellum.integrations.diskcache import VellumDisk

        cache = diskcache.Cache(path, disk=VellumDisk)

        def get(number):
            found = cache.get(number)
            if found is None:
                cache[number] = found = values(number)
            return found

        return get, cache
    import joblib

    from vellum.integrations.joblib import register

    register()
    memory = joblib.Memory(str(path), backend="vellum", verbose=0)
    return memory.cache(values), memory
