#include "lib/copies.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace bench {
namespace {

constexpr int kLevel = 3;

// As the program chooses it: a window that reaches from any byte back to the same offset in the
// previous image.
int window_log_for(std::size_t bytes) {
  const auto bounds = ZSTD_cParam_getBounds(ZSTD_c_windowLog);
  return std::clamp(static_cast<int>(std::bit_width(bytes)), bounds.lowerBound, bounds.upperBound);
}

std::size_t checked(std::size_t result) {
  if (ZSTD_isError(result) != 0) {
    throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(result));
  }
  return result;
}

bool is_zero(const std::byte* page) {
  static constexpr std::byte kZeros[kPageBytes] = {};
  return std::memcmp(page, kZeros, kPageBytes) == 0;
}

}  // namespace

void gather_image(const vellum::Region& region, Image& image) {
  const auto* const base = static_cast<const std::byte*>(region.data());
  image.clear();
  for (std::size_t at = 0; at < region.size_bytes(); at += kPageBytes) {
    if (!is_zero(base + at)) image.insert(image.end(), base + at, base + at + kPageBytes);
  }
}

double write_copy(const std::string& file, std::span<const std::byte> bytes) {
  const auto start = Clock::now();
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool ok = fd >= 0;
  while (ok && !bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), 8u << 20));
    ok = n > 0;
    if (ok) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  ok = ok && fdatasync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  const double seconds = seconds_since(start);
  std::filesystem::remove(file);
  if (!ok) throw std::runtime_error("cannot write " + file + ": " + std::strerror(error));
  return seconds;
}

MappedCopy::MappedCopy(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  void* map = MAP_FAILED;
  if (fd >= 0 && fstat(fd, &info) == 0) {
    map = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (map == MAP_FAILED) {
    throw std::runtime_error("cannot map " + file + ": " + std::strerror(error));
  }
  bytes_ = {static_cast<const std::byte*>(map), static_cast<std::size_t>(info.st_size)};
}

MappedCopy::~MappedCopy() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

struct PatchFrom::Context {
  Context() {
    if (zstd == nullptr) throw std::bad_alloc();
  }
  ~Context() { ZSTD_freeCCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ZSTD_CCtx* const zstd = ZSTD_createCCtx();
};

Patches patches_named(const std::string& name) {
  if (name == "none") return Patches::none;
  if (name == "plain") return Patches::plain;
  if (name == "single") return Patches::single_thread;
  throw std::runtime_error("--patch is none, plain or single, not " + name);
}

PatchFrom::PatchFrom(bool single_thread)
    : single_thread_(single_thread), context_(std::make_shared<Context>()) {}

std::uint64_t PatchFrom::add(Image& image) {
  ZSTD_CCtx* const zstd = context_->zstd;
  checked(ZSTD_CCtx_reset(zstd, ZSTD_reset_session_and_parameters));
  checked(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, kLevel));
  if (!before_.empty()) {
    const int window_log = window_log_for(std::max(before_.size(), image.size()));
    checked(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, window_log));
    checked(ZSTD_CCtx_setParameter(zstd, ZSTD_c_enableLongDistanceMatching, 1));
    checked(ZSTD_CCtx_setParameter(zstd, ZSTD_c_nbWorkers, single_thread_ ? 0 : 1));
    checked(ZSTD_CCtx_refPrefix(zstd, before_.data(), before_.size()));
  }
  const std::size_t room = ZSTD_compressBound(image.size());
  // Untouched memory takes no space: this buffer takes the space of the patch.
  const auto out = std::make_unique_for_overwrite<std::byte[]>(room);
  const std::size_t size =
      checked(ZSTD_compress2(zstd, out.get(), room, image.data(), image.size()));
  before_.swap(image);
  return size;
}

void Peers::add(const vellum::Region& region) {
  gather_image(region, image_);
  copy_seconds_ += write_copy(file_, image_);
  copy_bytes_ += static_cast<double>(image_.size());
  if (patches_) patch_bytes_ += static_cast<double>(patch_.add(image_));
}

}  // namespace bench
