// A medium in persistent memory: non-temporal stores, and a fence as its barrier (libpmem's
// pmem_memcpy() and pmem_drain(); Intel's SDM, volume 1, 10.4.6.2 for their order).
#include <libpmem.h>
#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "interfaces/atomic_file/medium.hpp"

namespace vellum::atomic_file {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

class PmemFile final : public MediumFile {
 public:
  explicit PmemFile(base::File& file) : file_(file) {}
  ~PmemFile() override { unmap(); }

  // False: not in persistent memory.
  bool map() {
    const std::uint64_t size = file_.size_bytes();
    if (size == 0) return false;
    void* at = map_synchronously(size);
    const bool is_dax = at != MAP_FAILED;
    if (!is_dax)
      at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.descriptor(), 0);
    if (at == MAP_FAILED)
      fail(Errc::io, "{}: cannot be mapped: {}", file_.path(), std::strerror(errno));
    data_ = static_cast<std::byte*>(at);
    size_bytes_ = size;
    if (!is_dax && pmem_is_pmem(at, size) == 0) return false;  // the latter: PMEM_IS_PMEM_FORCE
    file_.allocate(0, size);
    return true;
  }
  // The page faults happen now, not in a commit. With an older kernel they happen later.
  void populate() noexcept { madvise(data_, size_bytes_, kPopulateWrite); }

  const std::string& path() const noexcept override { return file_.path(); }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  void read(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    assert(offset_bytes + out.size() <= size_bytes_);
    std::memcpy(out.data(), data_ + offset_bytes, out.size());
  }
  void write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) override {
    assert(offset_bytes + bytes.size() <= size_bytes_);
    pmem_memcpy(data_ + offset_bytes, bytes.data(), bytes.size(),
                PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_NODRAIN);
  }
  void barrier() override { pmem_drain(); }
  void resize(std::uint64_t size_bytes) override {
    if (size_bytes < size_bytes_) {
      file_.truncate(size_bytes);
    } else {
      file_.allocate(0, size_bytes);
    }
    file_.sync_data();  // the size, which a fence does not make durable
    unmap();
    if (!map()) fail(Errc::io, "{}: is no longer in persistent memory", file_.path());
  }
  bool byte_addressable() const noexcept override { return true; }
  std::span<const std::byte> mapped() const noexcept override { return {data_, size_bytes_}; }

 private:
  // Succeeds only on DAX file systems: a fence is enough there, even for the file's metadata.
  void* map_synchronously(std::uint64_t size) noexcept {
    return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC,
                file_.descriptor(), 0);
  }
  void unmap() noexcept {
    if (data_ != nullptr) munmap(data_, size_bytes_);
    data_ = nullptr;
  }

  base::File& file_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace

std::unique_ptr<MediumFile> pmem_file(base::File& file, bool populate) {
  auto medium = std::make_unique<PmemFile>(file);
  if (!medium->map()) return nullptr;
  if (populate) medium->populate();
  return medium;
}

}  // namespace vellum::atomic_file
