// base/files/read_only_file.hpp: a File that refuses every change and every exclusive use.
#pragma once

#include <cstdint>
#include <span>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "vellum/error.hpp"

namespace vellum::base {

// Errc::io, naming the file, from every call that would write or lock it.
class ReadOnlyFile : public File {
 public:
  void pwrite(std::span<const std::byte>, std::uint64_t) final { refuse(); }
  void sync_data() final { refuse(); }
  void truncate(std::uint64_t) final { refuse(); }
  void allocate(std::uint64_t, std::uint64_t) final { refuse(); }
  void punch(std::uint64_t, std::uint64_t) final { refuse(); }
  bool try_lock_byte(std::uint64_t) final { refuse(); }
  bool try_lock_exclusive() final { refuse(); }
  bool try_lock_shared() final { refuse(); }

 private:
  [[noreturn]] void refuse() const { fail(Errc::io, "{}: open read-only", path()); }
};

}  // namespace vellum::base
