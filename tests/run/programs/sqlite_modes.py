"""What programs do with SQLite, its file read through mmap.

sqlite_modes.py work FILE JOURNAL    creates, changes, rolls back, vacuums; prints what is in it
sqlite_modes.py write FILE JOURNAL   transactions until it is killed; prints the number of each
sqlite_modes.py check FILE JOURNAL   the number of the last one; fails where the file is not whole
"""
import os
import sqlite3
import sys

mode, file, journal = sys.argv[1:]


def connect():
    connection = sqlite3.connect(file, isolation_level=None)
    if mode != "check":
        connection.execute("pragma journal_mode=" + journal)
        connection.execute("pragma synchronous=normal")
        connection.execute("pragma cache_size=10")  # changes reach the file before their commit
    connection.execute("pragma mmap_size=100000000")
    return connection


def work():
    connection = connect()
    connection.execute("create table t(key integer primary key, value blob)")
    connection.execute("begin")
    for i in range(1000):
        connection.execute("insert into t values(?, ?)", (i, bytes([i % 251]) * (i % 400)))
    connection.execute("commit")
    connection.close()
    connection = connect()
    connection.execute("create index i on t(value)")
    for turn in range(5):
        connection.execute("begin")
        connection.execute("update t set value=zeroblob(key%977) where key%20=?", (turn,))
        connection.execute("delete from t where key%50=?", (turn,))
        connection.execute("rollback" if turn == 3 else "commit")
    connection.execute("vacuum")
    print(connection.execute("pragma integrity_check").fetchone()[0])
    print(connection.execute("select count(*), sum(key), sum(length(value)) from t").fetchone())
    connection.close()


def write():
    connection = connect()
    connection.execute("create table if not exists t(key integer primary key, number, value)")
    number = connection.execute("select max(number) from t").fetchone()[0] or 0
    while True:
        number += 1
        connection.execute("begin")
        for key in range(100):
            value = bytes(20 + (key * 31 + number * 17) % 800)
            connection.execute("insert or replace into t values(?, ?, ?)", (key, number, value))
        connection.execute("commit")
        os.write(1, number.to_bytes(8, "little"))


def check():
    connection = connect()
    assert connection.execute("pragma integrity_check").fetchone()[0] == "ok"
    least, most, count = connection.execute("select min(number), max(number), count(*) from t").fetchone()
    assert least == most and count == 100, (least, most, count)
    print(least)


{"work": work, "write": write, "check": check}[mode]()
