"""Indexes of faiss, hnswlib and USearch in a region."""

import numpy as np
import pytest
from vector_libraries import BATCH, DIM, LIBRARIES, batch, door_of, keys_of

import vellum


@pytest.fixture(params=LIBRARIES)
def name(request):
    pytest.importorskip(LIBRARIES[request.param][0])
    return request.param


@pytest.fixture
def library(name):
    return LIBRARIES[name][1]


@pytest.fixture
def make(name, library):
    return lambda region: door_of(name).Index(region, "words", library.new())


def holds(library, kept, numbers):
    """Whether an index has these batches, all of them and nothing else."""
    assert library.count(kept.index) == BATCH * len(numbers)
    for number in numbers:
        np.testing.assert_array_equal(library.stored(kept.index, keys_of(number)), batch(number))
        key, distance = library.nearest(kept.index, batch(number)[3])
        assert key == keys_of(number)[3] and distance < 1e-6


def test_what_is_added_is_there_again(path, library, make):
    with vellum.open(path, create=True) as r:
        kept = make(r)
        for number in range(5):
            kept.add(batch(number), keys_of(number))
            if number == 2:
                kept.save()
        assert kept.pending == 2 * BATCH
    with vellum.open(path) as r:
        holds(library, make(r), range(5))


@pytest.mark.parametrize("first", ["i8", "f2", "f8"])
def test_the_log_has_what_the_library_has(path, library, make, name, first):
    """The dtype of the first vectors is not that of the log."""
    if name == "usearch" and first == "i8":
        pytest.skip("USearch refuses whole numbers of 8 bytes")
    with vellum.open(path, create=True) as r:
        kept = make(r)
        kept.add(np.zeros((BATCH, DIM), first), keys_of(0))
        kept.add(batch(1) + 1000, keys_of(1))
        kept.save()
        kept.add(batch(2) + 1000, keys_of(2))
        live = library.stored(kept.index, np.arange(3 * BATCH))
    with vellum.open(path) as r:
        again = library.stored(make(r).index, np.arange(3 * BATCH))
    np.testing.assert_array_equal(again, live)
    np.testing.assert_array_equal(again[2 * BATCH :], batch(2) + 1000)


def test_usearch_logs_whole_numbers_apart(region):
    index = pytest.importorskip("usearch.index")
    kept = door_of("usearch").Index(region, "words", index.Index(ndim=4, metric="l2sq", dtype="i8"))
    kept.add(np.full((1, 4), 3, "i1"), [0])
    with pytest.raises(vellum.InvalidArgument, match=r"save\(\) first"):
        kept.add(np.full((1, 4), 0.5, "f4"), [1])
    kept.save()
    kept.add(np.full((1, 4), 0.5, "f4"), [1])
    live = np.array(kept.index.get([0, 1]))
    kept._index = None
    np.testing.assert_array_equal(np.array(kept.index.get([0, 1])), live)


def test_keys_follow(region, library, make):
    kept = make(region)
    for number in range(2):
        assert kept.add(batch(number)).tolist() == keys_of(number).tolist()
    holds(library, kept, [0, 1])


def test_a_key_is_not_given_twice(path, library, make, name):
    with vellum.open(path, create=True) as r:
        kept = make(r)
        if name != "faiss-lists":  # its keys are positions
            kept.add(batch(1), keys_of(1))
        first = int(kept.add(batch(2))[0])
        assert first == (0 if name == "faiss-lists" else 2 * BATCH)
        if name not in ("faiss-graph", "faiss-lists"):  # they remove nothing
            kept.remove(np.arange(first, first + BATCH))
        for again in range(3):
            if again == 1:
                kept.save()
            first += BATCH
            assert kept.add(batch(again + 3)).tolist() == list(range(first, first + BATCH))
    with vellum.open(path) as r:
        kept = make(r)
        assert int(kept.add(batch(9))[0]) == first + BATCH
        np.testing.assert_array_equal(library.stored(kept.index, np.arange(first, first + BATCH)), batch(5))


def test_faiss_lists_give_no_key_twice(path):
    faiss = pytest.importorskip("faiss")
    new = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIM), DIM, 4)
    new.train(np.concatenate([batch(number) for number in range(10)]))
    new.add_with_ids(batch(0), keys_of(5))
    with vellum.open(path, create=True) as r:
        kept = door_of("faiss").Index(r, "words", new)
        assert kept.add(batch(1)).tolist() == keys_of(6).tolist()
        kept.remove(keys_of(6))
        assert kept.add(batch(1)).tolist() == keys_of(7).tolist()


def test_faiss_removes_positions_as_often_as_it_was_told(path):
    faiss = pytest.importorskip("faiss")
    with vellum.open(path, create=True) as r:
        kept = door_of("faiss").Index(r, "words", faiss.IndexFlatL2(DIM))
        kept.add(batch(0))
        for keys in ([0], [0], [0], [5, 6]):
            kept.remove(keys)
        assert kept.add(batch(1)).tolist() == list(range(BATCH - 5, 2 * BATCH - 5))
        live = kept.index.reconstruct_n(0, kept.index.ntotal)
    with vellum.open(path) as r:
        index = door_of("faiss").Index(r, "words").index
        np.testing.assert_array_equal(index.reconstruct_n(0, index.ntotal), live)
        assert index.ntotal == 2 * BATCH - 5


def test_an_old_version_answers_beside_the_live_one(path, library, make):
    with vellum.open(path, create=True) as r:
        kept = make(r)
        kept.add(batch(0), keys_of(0))
        r.snapshot("one")
        kept.add(batch(1), keys_of(1))
        kept.save()
        r.snapshot("two")
        kept.add(batch(2), keys_of(2))
        r.commit()
        for version, numbers in (("one", [0]), ("two", [0, 1])):
            old = make(vellum.open(path, version=version))
            holds(library, old, numbers)
            with pytest.raises(vellum.ReadOnly):
                old.add(batch(9), keys_of(9))
            holds(library, old, numbers)
        holds(library, kept, range(3))


def test_rollback_takes_the_index_back(region, library, make):
    kept = make(region)
    kept.add(batch(0), keys_of(0))
    region.snapshot("one")
    kept.add(batch(1), keys_of(1))
    region.rollback()
    holds(library, kept, [0])
    kept.add(batch(1), keys_of(1))
    kept.save()
    region.commit()
    region.rollback("one")
    holds(library, kept, [0])
    with pytest.raises(ZeroDivisionError), region.transaction():
        kept.add(batch(1), keys_of(1))
        kept.save()
        raise ZeroDivisionError
    holds(library, kept, [0])


def test_removed_vectors_stay_removed(path, library, make, name):
    if name in ("faiss-graph", "faiss-lists"):
        pytest.skip("faiss removes nothing from a graph, and from lists only without a map of keys")
    with vellum.open(path, create=True) as r:
        kept = make(r)
        kept.add(batch(0), keys_of(0))
        kept.remove([3])
        kept.add(batch(1), keys_of(1))
        assert library.nearest(kept.index, batch(0)[3])[0] != 3
    with vellum.open(path) as r:
        kept = make(r)
        assert library.nearest(kept.index, batch(0)[3])[0] != 3
        assert library.nearest(kept.index, batch(1)[3])[0] == keys_of(1)[3]
        kept.save()
    assert library.nearest(make(vellum.open(path, version="main")).index, batch(0)[3])[0] != 3


def test_what_the_library_refuses_is_not_kept(region, library, make):
    kept = make(region)
    kept.add(batch(0), keys_of(0))
    with pytest.raises(Exception):  # noqa: B017 - each library has its own
        kept.add(np.zeros((2, DIM + 1), "f4"), [100, 101])
    with pytest.raises(ValueError):
        kept.add(batch(1), [1])
    with pytest.raises(ValueError):
        kept.add(batch(1)[0], [1])
    assert kept.pending == BATCH
    holds(library, kept, [0])


def test_a_save_writes_the_pages_that_changed(path, library, make):
    with vellum.open(path, create=True) as r:
        kept = make(r)
        for number in range(200):
            kept.add(batch(number), keys_of(number))
        kept.save()
        first = r.commit().pages_changed
        kept.save()
        assert r.commit().pages_changed <= 4  # the list of arrays
        kept.add(batch(200)[:1], keys_of(200)[:1])
        kept.save()
        assert r.commit().pages_changed < first / 2


INTERRUPTED = [(call, n) for call in ("resize", "create_array") for n in range(3)]


@pytest.mark.parametrize(("call", "after"), INTERRUPTED)
@pytest.mark.parametrize("is_first", [True, False])
def test_an_interrupted_add_leaves_the_index_whole(path, monkeypatch, is_first, call, after):
    pytest.importorskip("hnswlib")  # for all: the log is the same
    library = LIBRARIES["hnswlib"][1]

    def make(region):
        return door_of("hnswlib").Index(region, "words", library.new())

    with vellum.open(path, create=True) as r:
        kept = make(r)
        if not is_first:
            kept.add(batch(0), keys_of(0))
        elif call == "create_array":
            assert "log" not in r["words"]
        plain, calls = getattr(vellum.Group, call), []

        def interrupted(self, *args, **kwargs):
            calls.append(args)
            if len(calls) == after + 1:
                plain(self, *args, **kwargs)
                raise KeyboardInterrupt
            return plain(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(vellum.Group, call, interrupted)
            try:
                kept.add(batch(1), keys_of(1))
            except KeyboardInterrupt:
                is_added = False
            else:
                is_added = True  # there was no such call
        assert is_added == (call == "create_array" and not is_first)
        r.snapshot("between")
        before = [] if is_first else [0]
        numbers = [*before, 1] if is_added else before
        holds(library, make(vellum.open(path, version="between")), numbers)
        holds(library, kept, numbers)
        kept.add(batch(2), keys_of(2))
    with vellum.open(path) as r:
        holds(library, make(r), [*numbers, 2])


def test_an_index_that_is_not_there(region, name):
    with pytest.raises(vellum.NotFound):
        door_of(name).Index(region, "words")
    region.create_group("words")
    with pytest.raises(vellum.InvalidArgument, match="no index of"):
        door_of(name).Index(region, "words")
