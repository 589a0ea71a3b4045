// An LMDB whose content identifies the transactions that made it. Throws std::runtime_error.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <memory>
#include <string>

namespace vellum::power {

class LmdbDatabase {
 public:
  // `file`: with MDB_NOSUBDIR. `flags`: of mdb_env_open().
  LmdbDatabase(const std::string& file, unsigned flags);

  // Puts and deletes some keys, and increments its counter. `sync`: a flush beyond LMDB's own.
  void transaction(std::uint64_t random, bool sync);
  // The number of the last transaction; 0: there was none. Throws when the rest does not match it.
  std::uint64_t checked_number() const;

 private:
  struct Close {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };
  std::unique_ptr<MDB_env, Close> env_;
  MDB_dbi dbi_ = 0;
};

}  // namespace vellum::power
