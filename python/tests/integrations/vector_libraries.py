"""The libraries of vector indexes, for the tests."""

import importlib

import numpy as np

DIM = 16
BATCH = 20


def batch(number):
    return np.random.default_rng(number).standard_normal((BATCH, DIM), dtype="f4")


def keys_of(number):
    return np.arange(number * BATCH, (number + 1) * BATCH)


class Faiss:
    @staticmethod
    def new():
        import faiss

        return faiss.IndexIDMap2(faiss.IndexFlatL2(DIM))

    @staticmethod
    def count(index):
        return index.ntotal

    @staticmethod
    def stored(index, keys):
        return np.array([index.reconstruct(int(key)) for key in keys])

    @staticmethod
    def nearest(index, vector):
        distances, keys = index.search(vector[None], 1)
        return int(keys[0, 0]), float(distances[0, 0])


class FaissGraph(Faiss):
    @staticmethod
    def new():
        import faiss

        return faiss.IndexIDMap2(faiss.IndexHNSWFlat(DIM, 8))


class Hnswlib:
    @staticmethod
    def new():
        import hnswlib

        index = hnswlib.Index("l2", DIM)
        index.init_index(10, M=8)
        index.set_ef(100)
        return index

    @staticmethod
    def count(index):
        return index.get_current_count()

    @staticmethod
    def stored(index, keys):
        return np.array(index.get_items(keys))

    @staticmethod
    def nearest(index, vector):
        keys, distances = index.knn_query(vector[None], 1)
        return int(keys[0, 0]), float(distances[0, 0])


class Usearch:
    @staticmethod
    def new():
        from usearch.index import Index

        return Index(ndim=DIM, metric="l2sq", dtype="f32", connectivity=8)

    @staticmethod
    def count(index):
        return len(index)

    @staticmethod
    def stored(index, keys):
        return np.array(index.get(keys.astype(np.uint64)))

    @staticmethod
    def nearest(index, vector):
        found = index.search(vector, 1)
        return int(found.keys[0]), float(found.distances[0])


class FaissLists(FaissGraph):
    @staticmethod
    def new():
        import faiss

        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIM), DIM, 4)
        index.train(np.random.default_rng(1).standard_normal((200, DIM), dtype="f4"))
        index.nprobe = 4
        index.make_direct_map()
        return index


LIBRARIES = {
    "faiss": ("faiss", Faiss),
    "faiss-graph": ("faiss", FaissGraph),
    "faiss-lists": ("faiss", FaissLists),
    "hnswlib": ("hnswlib", Hnswlib),
    "usearch": ("usearch", Usearch),
}


def door_of(name):
    return importlib.import_module(f"vellum.integrations.{LIBRARIES[name][0]}")
