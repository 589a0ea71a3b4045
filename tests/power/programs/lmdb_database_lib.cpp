#include "power/programs/lmdb_database.hpp"

#include <cstring>
#include <random>
#include <stdexcept>

namespace vellum::power {

namespace {

constexpr std::size_t kMapBytes = 4 << 20;
constexpr std::uint64_t kKeys = 300, kTotalKey = kKeys;
constexpr std::size_t kLongest = 1200;

struct Total {
  std::uint64_t number = 0, keys = 0, sum = 0;  // `sum`: of the numbers of all keys
};

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("LMDB: ") + what);
}

void must(int error) {
  if (error != 0) throw std::runtime_error(std::string("LMDB: ") + mdb_strerror(error));
}

MDB_val value_of(const void* data, std::size_t size) { return {size, const_cast<void*>(data)}; }

// The value of a key, as the transaction of this number wrote it.
std::string content_of(std::uint64_t number, std::uint64_t key) {
  std::string out(8 + (number * 2654435761U ^ key) % kLongest, static_cast<char>(number ^ key));
  std::memcpy(out.data(), &number, 8);
  return out;
}

Total total_in(MDB_txn* txn, MDB_dbi dbi) {
  Total total;
  MDB_val key = value_of(&kTotalKey, 8), found;
  if (mdb_get(txn, dbi, &key, &found) == 0) std::memcpy(&total, found.mv_data, sizeof total);
  return total;
}

}  // namespace

LmdbDatabase::LmdbDatabase(const std::string& file, unsigned flags) {
  MDB_env* env = nullptr;
  must(mdb_env_create(&env));
  env_.reset(env);
  must(mdb_env_set_mapsize(env, kMapBytes));
  must(mdb_env_open(env, file.c_str(), flags | MDB_NOSUBDIR, 0644));
  MDB_txn* txn;
  must(mdb_txn_begin(env, nullptr, flags & MDB_RDONLY, &txn));
  must(mdb_dbi_open(txn, nullptr, 0, &dbi_));
  must(mdb_txn_commit(txn));
}

void LmdbDatabase::transaction(std::uint64_t random, bool sync) {
  std::mt19937_64 choose(random);
  MDB_txn* txn;
  must(mdb_txn_begin(env_.get(), nullptr, 0, &txn));
  Total total = total_in(txn, dbi_);
  ++total.number;
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t name = choose() % kKeys;
    MDB_val key = value_of(&name, 8), found;
    if (mdb_get(txn, dbi_, &key, &found) == 0) {
      std::uint64_t number;
      std::memcpy(&number, found.mv_data, 8);
      total.sum -= number;
      --total.keys;
      if (choose() % 4 == 0) {
        must(mdb_del(txn, dbi_, &key, nullptr));
        continue;
      }
    }
    const std::string content = content_of(total.number, name);
    MDB_val data = value_of(content.data(), content.size());
    must(mdb_put(txn, dbi_, &key, &data, 0));
    total.sum += total.number;
    ++total.keys;
  }
  MDB_val key = value_of(&kTotalKey, 8), data = value_of(&total, sizeof total);
  must(mdb_put(txn, dbi_, &key, &data, 0));
  must(mdb_txn_commit(txn));
  if (sync) must(mdb_env_sync(env_.get(), 1));
}

std::uint64_t LmdbDatabase::checked_number() const {
  MDB_txn* txn;
  MDB_cursor* cursor;
  must(mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &txn));
  const Total total = total_in(txn, dbi_);
  Total found = {total.number, 0, 0};
  must(mdb_cursor_open(txn, dbi_, &cursor));
  for (MDB_val key, data; mdb_cursor_get(cursor, &key, &data, MDB_NEXT) == 0;) {
    std::uint64_t name, number;
    require(key.mv_size == 8 && data.mv_size >= 8, "a record of another size");
    std::memcpy(&name, key.mv_data, 8);
    std::memcpy(&number, data.mv_data, 8);
    if (name == kTotalKey) continue;
    const std::string wanted = content_of(number, name);
    require(number <= total.number && data.mv_size == wanted.size() &&
                std::memcmp(data.mv_data, wanted.data(), wanted.size()) == 0,
            "a record that no transaction wrote");
    ++found.keys;
    found.sum += number;
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  require(found.keys == total.keys && found.sum == total.sum,
          "not the state of the last transaction");
  return total.number;
}

}  // namespace vellum::power
