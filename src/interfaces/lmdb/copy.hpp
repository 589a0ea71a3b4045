// interfaces/lmdb/copy.hpp: the content of an LMDB environment as of one transaction, by LMDB's own
// copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

struct MDB_env;

namespace vellum::lmdb {

class Copy {
 public:
  // `lock_file`: lock_file_of(path). Without one, writers do not see this reader: the caller must
  // detect writes during the copy.
  Copy(const std::string& path, const std::string& lock_file);
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  std::uint64_t expected_bytes() const noexcept { return expected_bytes_; }
  // Whether no transaction has been committed since this object was created. If so, a writer that
  // does not see this reader has written only to pages that are not in the copy.
  bool of_last_transaction() const;
  // Reads the next bytes; 0: the end. The transaction starts with the first call.
  std::size_t read(void* to, std::size_t capacity_bytes);

 private:
  struct CloseEnv {
    void operator()(MDB_env* env) const;
  };
  void require(int error) const;
  void start();
  void write_copy(int fd) noexcept;

  const std::string path_;
  std::unique_ptr<MDB_env, CloseEnv> env_;
  std::uint64_t expected_bytes_ = 0;
  std::size_t first_transaction_ = 0;
  int from_copy_ = -1;  // the pipe's read end
  std::thread copier_;
  int copied_ = 0;  // LMDB's result; valid once the thread has ended
};

}  // namespace vellum::lmdb
