/* Typical uses of LMDB, in a given mode: sub-databases, a map that grows while it is used, a reader
 * concurrent with the writer, deletions, copies. Deterministic:
 *
 *   lmdb_modes DIR FLAGS   flags of mdb_env_open(), a number; leaves a copy in DIR/copy */
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds)                                                \
  do {                                                                \
    const int failed = (holds);                                       \
    if (failed != 0) {                                                \
      fprintf(stderr, "line %d: %s: %d\n", __LINE__, #holds, failed); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static MDB_env* env;
static MDB_dbi words, pairs, numbers, gone;
static size_t map_bytes = 256 << 10;

static void open_env(const char* directory, unsigned flags) {
  MDB_txn* txn;
  REQUIRE(mdb_env_create(&env));
  REQUIRE(mdb_env_set_mapsize(env, map_bytes));
  REQUIRE(mdb_env_set_maxdbs(env, 8));
  REQUIRE(mdb_env_open(env, directory, flags, 0644));
  REQUIRE(mdb_txn_begin(env, NULL, 0, &txn));
  REQUIRE(mdb_dbi_open(txn, "words", MDB_CREATE, &words));
  REQUIRE(mdb_dbi_open(txn, "pairs", MDB_CREATE | MDB_DUPSORT, &pairs));
  REQUIRE(mdb_dbi_open(txn, "numbers", MDB_CREATE | MDB_INTEGERKEY, &numbers));
  REQUIRE(mdb_dbi_open(txn, "gone", MDB_CREATE, &gone));
  REQUIRE(mdb_txn_commit(txn));
}

/* 0, or the error, mostly MDB_MAP_FULL. */
static int put(MDB_txn* txn, MDB_dbi dbi, const void* key, size_t key_bytes, size_t bytes,
               int fill) {
  static char content[6000];
  memset(content, fill, bytes);
  MDB_val name = {key_bytes, (void*)key}, value = {bytes, content};
  return mdb_put(txn, dbi, &name, &value, 0);
}

static int fill(MDB_txn* txn, unsigned round) {
  for (unsigned i = 0; i < 60; ++i) {
    char name[32];
    const size_t length = (size_t)sprintf(name, "word %u", (round * 37 + i * 11) % 900);
    const unsigned number = round * 60 + i;
    int error = put(txn, words, name, length, i % 20 == 0 ? 5500 : i * 7 % 800, (int)round);
    if (error == 0) error = put(txn, pairs, name, length, 1 + i % 30, 'a' + (int)(round % 20));
    if (error == 0) error = put(txn, numbers, &number, sizeof number, 30, (int)i);
    if (error == 0) error = put(txn, gone, name, length, 100, 'g');
    if (error != 0) return error;
  }
  return 0;
}

static void transaction(unsigned round) {
  for (;;) {
    MDB_txn* txn;
    REQUIRE(mdb_txn_begin(env, NULL, 0, &txn));
    const int error = fill(txn, round);
    if (error == 0) {
      REQUIRE(mdb_txn_commit(txn));
      return;
    }
    mdb_txn_abort(txn);
    REQUIRE(error == MDB_MAP_FULL ? 0 : error);
    REQUIRE(mdb_env_set_mapsize(env, map_bytes *= 2));
  }
}

static size_t entries(MDB_txn* txn, MDB_dbi dbi) {
  MDB_stat status;
  REQUIRE(mdb_stat(txn, dbi, &status));
  return status.ms_entries;
}

/* A reader keeps its initial state. */
static void read_beside_a_writer(void) {
  MDB_txn *reader, *writer;
  REQUIRE(mdb_txn_begin(env, NULL, MDB_RDONLY, &reader));
  const size_t before = entries(reader, numbers);
  MDB_val name = {6, "word 0"}, value;
  REQUIRE(mdb_get(reader, words, &name, &value));
  char* was = malloc(value.mv_size);
  memcpy(was, value.mv_data, value.mv_size);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(mdb_txn_begin(env, NULL, 0, &writer));
    REQUIRE(put(writer, words, "word 0", 6, 700, 'x'));
    for (unsigned n = 0; n < 300; ++n) {
      MDB_val key = {sizeof n, &n};
      const int error = mdb_del(writer, numbers, &key, NULL);
      REQUIRE(error == MDB_NOTFOUND ? 0 : error);
    }
    REQUIRE(mdb_txn_commit(writer));
  }
  REQUIRE(entries(reader, numbers) != before);
  REQUIRE(memcmp(was, value.mv_data, value.mv_size));
  mdb_txn_abort(reader);
  free(was);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const unsigned flags = (unsigned)strtoul(argv[2], NULL, 0);
  open_env(argv[1], flags);
  for (unsigned round = 0; round < 25; ++round) transaction(round);
  REQUIRE(mdb_env_sync(env, 1));
  mdb_env_close(env);
  open_env(argv[1], flags);
  transaction(25);
  read_beside_a_writer();
  MDB_txn* txn;
  REQUIRE(mdb_txn_begin(env, NULL, 0, &txn));
  REQUIRE(mdb_drop(txn, gone, 1));
  REQUIRE(mdb_txn_commit(txn));
  char copy[4096];
  snprintf(copy, sizeof copy, "%s/copy", argv[1]);
  REQUIRE(mdb_env_copy2(env, copy, MDB_CP_COMPACT));
  mdb_env_close(env);
  return 0;
}
