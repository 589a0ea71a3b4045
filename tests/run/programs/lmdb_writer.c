/* A program that uses LMDB. DIR may also be the name of a file (MDB_NOSUBDIR).
 *
 *   lmdb_writer write DIR   until it is killed, in the fastest mode, in which LMDB itself promises
 *                           nothing after a crash (lmdb.h, MDB_NOSYNC with MDB_WRITEMAP): flushes
 *                           every third transaction, and writes the number of that to standard
 *                           output, 8 bytes each time
 *   lmdb_writer safe DIR    the same in LMDB's default mode
 *   lmdb_writer few DIR     the same, three transactions
 *   lmdb_writer readers DIR takes all free slots of readers, and is killed
 *   lmdb_writer check DIR   1 if the database does not match its transactions; prints the
 *                           number of the last one */
#define _GNU_SOURCE
#include <lmdb.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUIRE(holds)                                    \
  do {                                                    \
    if (!(holds)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #holds); \
      exit(1);                                            \
    }                                                     \
  } while (0)

enum { kKeys = 3000, kLongest = 1500 };

/* A key has the `number` of the transaction that wrote it, and bytes that depend on it. */
struct Value {
  uint64_t number, key, length;
  unsigned char bytes[kLongest];
};
struct Total {
  uint64_t number, keys, sum; /* of the numbers of all keys */
};

static MDB_env* env;
static MDB_dbi dbi;
static MDB_val total_key = {5, "total"};

static void fill(struct Value* value, uint64_t number, uint64_t key) {
  value->number = number;
  value->key = key;
  value->length = (number * 2654435761U ^ key) % kLongest;
  memset(value->bytes, (int)((number ^ key) & 0xff), value->length);
}
static size_t size_of(const struct Value* value) { return 24 + value->length; }

static struct Total read_total(MDB_txn* txn) {
  struct Total total = {0, 0, 0};
  MDB_val found;
  if (mdb_get(txn, dbi, &total_key, &found) == 0) memcpy(&total, found.mv_data, sizeof total);
  return total;
}

static void open_env(const char* directory, unsigned flags, unsigned begin) {
  MDB_txn* txn;
  struct stat status;
  if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode)) flags |= MDB_NOSUBDIR;
  REQUIRE(mdb_env_create(&env) == 0 && mdb_env_set_mapsize(env, 64u << 20) == 0);
  const int error = mdb_env_open(env, directory, flags, 0644);
  if (error != 0) fprintf(stderr, "%s: %s\n", directory, mdb_strerror(error));
  REQUIRE(error == 0 && mdb_txn_begin(env, NULL, begin, &txn) == 0);
  REQUIRE(mdb_dbi_open(txn, NULL, 0, &dbi) == 0 && mdb_txn_commit(txn) == 0);
}

static void transaction(void) {
  static struct Value value;
  MDB_txn* txn;
  REQUIRE(mdb_txn_begin(env, NULL, 0, &txn) == 0);
  struct Total total = read_total(txn);
  ++total.number;
  for (int i = 0; i < 20; ++i) {
    uint64_t name = (uint64_t)random() % kKeys;
    MDB_val key = {sizeof name, &name}, found;
    if (mdb_get(txn, dbi, &key, &found) == 0) {
      uint64_t number;
      memcpy(&number, found.mv_data, 8);
      total.sum -= number;
      --total.keys;
      if (random() % 4 == 0) {
        REQUIRE(mdb_del(txn, dbi, &key, NULL) == 0);
        continue;
      }
    }
    fill(&value, total.number, name);
    MDB_val data = {size_of(&value), &value};
    REQUIRE(mdb_put(txn, dbi, &key, &data, 0) == 0);
    total.sum += total.number;
    ++total.keys;
  }
  MDB_val data = {sizeof total, &total};
  REQUIRE(mdb_put(txn, dbi, &total_key, &data, 0) == 0 && mdb_txn_commit(txn) == 0);
}

static void write_transactions(const char* directory, unsigned flags, int for_ever) {
  srandom((unsigned)getpid());
  open_env(directory, flags, 0);
  do {
    for (int i = 0; i < 3; ++i) transaction();
    REQUIRE(mdb_env_sync(env, 1) == 0);
    MDB_txn* txn;
    REQUIRE(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    const uint64_t number = read_total(txn).number;
    mdb_txn_abort(txn);
    REQUIRE(write(1, &number, 8) == 8);
  } while (for_ever);
}

static void check(const char* directory) {
  static struct Value wanted;
  open_env(directory, MDB_RDONLY | MDB_NOLOCK, MDB_RDONLY);
  MDB_txn* txn;
  MDB_cursor* cursor;
  REQUIRE(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
  const struct Total total = read_total(txn);
  struct Total found = {total.number, 0, 0};
  REQUIRE(mdb_cursor_open(txn, dbi, &cursor) == 0);
  for (MDB_val key, data; mdb_cursor_get(cursor, &key, &data, MDB_NEXT) == 0;) {
    if (key.mv_size != 8) continue;
    uint64_t name, number;
    memcpy(&name, key.mv_data, 8);
    memcpy(&number, data.mv_data, 8);
    fill(&wanted, number, name);
    REQUIRE(number <= total.number && data.mv_size == size_of(&wanted));
    REQUIRE(memcmp(data.mv_data, &wanted, data.mv_size) == 0);
    ++found.keys;
    found.sum += number;
  }
  REQUIRE(found.keys == total.keys && found.sum == total.sum);
  printf("%llu\n", (unsigned long long)total.number);
}

static void leave_readers(const char* directory) {
  MDB_txn* txn;
  open_env(directory, MDB_NOTLS, MDB_RDONLY);
  while (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0) {
  }
  raise(SIGKILL);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3);
  const char* const mode = argv[1];
  if (strcmp(mode, "readers") == 0) leave_readers(argv[2]);
  if (strcmp(mode, "check") == 0) {
    check(argv[2]);
  } else {
    write_transactions(argv[2], strcmp(mode, "write") == 0 ? MDB_NOSYNC | MDB_WRITEMAP : 0,
                       strcmp(mode, "few") != 0);
  }
  return 0;
}
