import copy
import pickle

import numpy as np
import pytest

import vellum


def test_names_with_slashes_are_groups(path):
    with vellum.open(path, create=True) as r:
        r["a/b/x"] = np.arange(3)
        r["a/y"] = np.arange(4)
        r.create_group("empty")
        group = r["a"]
        assert sorted(group) == ["b", "y"] and len(group) == 2
        assert group["b"]["x"].tolist() == group["b/x"].tolist() == [0, 1, 2]
        group["b/z"] = np.ones(2)
        assert "a/b/z" in r and "b/z" in group and "z" not in group
        assert sorted(name for name, _ in r.visit()) == ["a/b/x", "a/b/z", "a/y"]
        with pytest.raises(FileExistsError, match="no group"):
            r["a/y/w"] = np.ones(1)
    r = vellum.open(path)
    del r["a"]
    assert list(r) == ["empty"]
    r.close()


@pytest.mark.parametrize("name", ["", "/", "a/", "/a", "a//b", ".", "a/..", "\0", "a" * 1001, 7])
def test_names_that_are_none(region, name):
    with pytest.raises(ValueError):
        region.create_array(name, 3)
    assert list(region) == []


def test_attributes(path):
    with vellum.open(path, create=True) as r:
        x = r.create_array("g/x", 3)
        r.attrs["title"] = "all"
        r["g"].attrs.update(a=1, b=[1, {"c": None}])
        x.attrs["unit"] = "m"
        x.attrs["range"] = np.array([1.5, 2.5])
        x.attrs["n"] = np.int64(3)
        with pytest.raises(ValueError):
            x.attrs["bad"] = object()
        with pytest.raises(KeyError):
            x.attrs["bad"]
        with pytest.raises(KeyError):
            del x.attrs["bad"]
        r["g"].attrs["b"].append(9)
    r = vellum.open(path, mode="r")
    assert dict(r.attrs) == {"title": "all"}
    assert dict(r["g"].attrs) == {"a": 1, "b": [1, {"c": None}, 9]}
    assert dict(r["g/x"].attrs) == {"unit": "m", "range": [1.5, 2.5], "n": 3}
    with pytest.raises(PermissionError):
        r.attrs["x"] = 1


def test_dicts_of_small_objects(path):
    with vellum.open(path, create=True) as r:
        d = r.create_dict("config", {"lr": 0.1})
        d["layers"] = [64, 64]
        r.commit()
        d["lr"] = 0.2
        r.rollback()
        assert d["lr"] == 0.1
        del d["layers"]
    r = vellum.open(path, mode="r")
    assert dict(r["config"]) == {"lr": 0.1}


def test_strings_and_bytes(path):
    texts = ["", "ä", "x" * 100_000, "日本語"] * 50
    with vellum.open(path, create=True) as r:
        s = r.create_strings("s", texts)
        b = r.create_bytes("b")
        b.extend(bytes([i]) * i for i in range(200))
        s.append("last")
        s[1] = "longer than before"
        s[2] = ""
        del s[3]
        s[5:7] = ["one", "two", "three"]
        with pytest.raises(ValueError):
            s.append(b"bytes")
        with pytest.raises(ValueError):
            b[0] = "text"
        expected = [*texts, "last"]
        expected[1], expected[2] = "longer than before", ""
        del expected[3]
        expected[5:7] = ["one", "two", "three"]
        assert s == expected
        with pytest.raises(IndexError):
            s[len(s)]
    r = vellum.open(path, mode="r")
    s, b = r["s"], r["b"]
    assert list(s) == expected and s[-1] == "last" and s[1:4] == expected[1:4] and s[::-7] == expected[::-7]
    assert s.to_numpy().tolist() == expected
    assert b[199] == bytes([199]) * 199 and len(b) == 200
    assert s.offsets.dtype == np.int64 and s.data.tobytes().decode() == "".join(expected)
    with pytest.raises(PermissionError):
        s.append("x")


def test_strings_grow_one_by_one(path):
    with vellum.open(path, create=True) as r:
        s = r.create_strings("s")
        for i in range(3000):
            s.append(f"value {i}" * 200)
        r.commit()
    assert vellum.open(path, mode="r")["s"][2999] == "value 2999" * 200


def test_lists_and_dicts_of_attributes_are_the_regions_own(path):
    with vellum.open(path, create=True) as r:
        r.attrs["l"] = [1, {"a": [2]}]
        r.commit()
        r.attrs["l"].append(np.int64(3))
        r.attrs["l"][1]["a"].extend([4, (5,)])
        r.attrs.setdefault("d", {}).setdefault("x", []).append("y")
        r.attrs["l"] += [6]
        r.attrs["d"].update(z=1)
        r.attrs["d"] |= {"n": None}
        with pytest.raises(ValueError, match="JSON"):
            r.attrs["l"].append(object())
        for wrong in (lambda: r.attrs["d"].update({1: 2}), lambda: r.attrs["d"].__setitem__(2, 1)):
            with pytest.raises(ValueError, match="strings"):
                wrong()
        stale = r.attrs["d"]
    v = vellum.open(path)
    assert v.attrs == {"l": [1, {"a": [2, 4, [5]]}, 3, 6], "d": {"x": ["y"], "z": 1, "n": None}}
    kept = v.attrs["l"]
    kept.sort(key=str, reverse=True)
    v.rollback()
    with pytest.raises(ValueError, match="read it again"):
        kept.append(1)
    with pytest.raises(ValueError, match="closed"):
        stale["x"] = 1
    assert type(pickle.loads(pickle.dumps(v.attrs["l"]))) is list and copy.deepcopy(v.attrs["d"]) == v.attrs["d"]
    old = vellum.open(path, mode="r")
    with pytest.raises(vellum.ReadOnly):
        old.attrs["l"].clear()
