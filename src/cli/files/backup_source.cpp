#include "cli/files/backup_source.hpp"

#include <algorithm>
#include <filesystem>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/file.hpp"
#include "cli/files/file_in_use.hpp"
#include "cli/files/take_file.hpp"
#include "lmdb/copy.hpp"
#include "lmdb/data_file.hpp"
#include "lmdb/lock_file.hpp"

namespace vellum::cli {
namespace {

std::unique_ptr<base::File> open_shared(const std::string& path) {
  auto file = base::posix_fs().open(path, base::OpenMode::read_only);
  if (!file->try_lock_shared()) {
    fail(Errc::busy,
         "{}: a program under vellum run has it open, or another "
         "has locked it; under vellum run, vellum snapshot keeps "
         "what it holds",
         path);
  }
  return file;
}

// Detects whether a file has been written. Of the stores through a mapping only the first changes
// the file's times, so an older mapping has to be detected as such.
class Watch {
 public:
  Watch(const base::File& file, bool stopped) : file_(file), stopped_(stopped) {
    if (is_being_written()) {
      fail(Errc::busy,
           "{}: somebody has it open to write; if nobody writes it "
           "meanwhile, take it with --stopped",
           file_.path());
    }
    before_ = file_.identity();
  }
  void require_unchanged() const {
    if (file_.identity() == before_ && !file_.replaced() && !is_being_written()) return;
    fail(Errc::busy, "{}: somebody has changed it meanwhile; nothing was kept, try again",
         file_.path());
  }

 private:
  bool is_being_written() const { return !stopped_ && is_open_elsewhere(file_, Use::writing); }

  const base::File& file_;
  const bool stopped_;
  base::FileIdentity before_;
};

class PlainSource final : public BackupSource {
 public:
  PlainSource(std::unique_ptr<base::File> file, bool stopped)
      : file_(std::move(file)), watch_(*file_, stopped), size_bytes_(file_->size_bytes()) {}

  std::uint64_t expected_bytes() const override { return size_bytes_; }
  std::size_t read(void* to, std::size_t capacity_bytes) override {
    const std::size_t n = std::min<std::uint64_t>(capacity_bytes, size_bytes_ - at_);
    if (file_->size_bytes() < at_ + n) watch_.require_unchanged();  // a better error than a read's
    file_->pread({static_cast<std::byte*>(to), n}, at_);
    at_ += n;
    if (n == 0) watch_.require_unchanged();
    return n;
  }

 private:
  std::unique_ptr<base::File> file_;
  Watch watch_;
  std::uint64_t size_bytes_, at_ = 0;
};

// The environment was not open anywhere, and LMDB does not know of this reader: a writer that came
// meanwhile may have reused pages that were still to be read. It has left a lock file, or its
// writes are detected.
class UnlockedLmdbSource final : public BackupSource {
 public:
  explicit UnlockedLmdbSource(std::unique_ptr<base::File> file)
      : file_(std::move(file)), watch_(*file_, false), copy_(file_->path(), "") {}

  std::uint64_t expected_bytes() const override { return copy_.expected_bytes(); }
  std::size_t read(void* to, std::size_t capacity_bytes) override {
    const std::size_t n = copy_.read(to, capacity_bytes);
    if (n == 0) require_unchanged();
    return n;
  }

 private:
  void require_unchanged() const {
    watch_.require_unchanged();
    const std::string lock = lmdb::lock_file_of(file_->path());
    if (lock.empty()) return;
    fail(Errc::busy, "{}: somebody has opened it meanwhile; nothing was kept, try again",
         file_->path());
  }

  std::unique_ptr<base::File> file_;
  Watch watch_;
  lmdb::Copy copy_;
};

class LmdbSource final : public BackupSource {
 public:
  LmdbSource(std::unique_ptr<base::File> file, const std::string& lock_file)
      : file_(std::move(file)), copy_(file_->path(), lock_file) {}

  std::uint64_t expected_bytes() const override { return copy_.expected_bytes(); }
  std::size_t read(void* to, std::size_t capacity_bytes) override {
    return copy_.read(to, capacity_bytes);
  }

 private:
  std::unique_ptr<base::File> file_;  // locked, so that no program under vellum run opens it
  lmdb::Copy copy_;
};

}  // namespace

std::unique_ptr<BackupSource> open_backup_source(const std::string& given, bool stopped) {
  const std::string path = regular_file(given);
  require_no_journal(path);
  auto file = open_shared(path);
  if (stopped || !lmdb::is_data(*file))
    return std::make_unique<PlainSource>(std::move(file), stopped);
  std::string lock_file = lmdb::lock_file_of(std::filesystem::absolute(given).string());
  if (lock_file.empty()) lock_file = lmdb::lock_file_of(path);  // `given` is a link
  if (lock_file.empty()) return std::make_unique<UnlockedLmdbSource>(std::move(file));
  return std::make_unique<LmdbSource>(std::move(file), lock_file);
}

}  // namespace vellum::cli
