#include "cli/files/backup_source.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/inode_lock.hpp"
#include "base/threads/end_request.hpp"
#include "cli/files/file_family.hpp"
#include "cli/files/ingest_file.hpp"
#include "interfaces/lmdb/copy.hpp"
#include "interfaces/lmdb/lock_file.hpp"
#include "interfaces/lmdb/transaction_content.hpp"

namespace vellum::cli {
namespace {

// A file that no program under vellum run can open meanwhile.
struct LockedFile {
  explicit LockedFile(const std::string& path)
      : file(base::posix_fs().open(path, base::OpenMode::read_only)),
        lock(base::InodeLock::try_take(*file, base::InodeLock::Mode::shared)) {
    if (lock != nullptr) return;
    fail(Errc::busy,
         "{}: a program under vellum run has it open; vellum snapshot keeps its content", path);
  }
  std::unique_ptr<base::File> file;
  std::unique_ptr<base::InodeLock> lock;
};

bool on_read_only_file_system(const std::string& path) {
  return ::access(path.c_str(), W_OK) != 0 && errno == EROFS;
}

// Detects whether a file has been written. Only the first store through a mapping changes the
// file's times, so an older mapping has to be detected as such.
class WriteDetector {
 public:
  WriteDetector(const base::File& file, bool stopped, const char* other_way = "")
      : file_(file), stopped_(stopped) {
    if (is_being_written()) {
      fail(Errc::busy,
           "{}: a program has it open for writing; {}if none writes it meanwhile, use --stopped",
           file_.path(), other_way);
    }
    before_ = file_.identity();
  }
  void require_unchanged() const {
    if (file_.identity() == before_ && !file_.replaced() && !is_being_written()) return;
    fail(Errc::busy, "{}: a program has changed it meanwhile; nothing was kept, try again",
         file_.path());
  }

 private:
  bool is_being_written() const {
    return !stopped_ && is_open_in_other_process(file_, FileUse::writing);
  }

  const base::File& file_;
  const bool stopped_;
  base::FileIdentity before_;
};

// Content that reads from another one.
class Source : public store::Content {
 public:
  store::ContentRange next(std::span<std::byte> room) override { return from().next(room); }
  void read(format::PageNumber first, std::span<std::byte> out) const override {
    from().read(first, out);
  }
  bool restart() override { return from().restart(); }
  std::uint64_t position_bytes() const override { return from().position_bytes(); }
  std::uint64_t size_bytes() const override { return from().size_bytes(); }

 protected:
  virtual store::Content& from() const = 0;
};

class PlainSource final : public Source {
 public:
  PlainSource(LockedFile file, bool stopped)
      : file_(std::move(file)),
        watch_(*file_.file, stopped),
        content_(store::content_of(*file_.file)) {}
  void check() const override { watch_.require_unchanged(); }

 private:
  store::Content& from() const override { return *content_; }

  LockedFile file_;
  WriteDetector watch_;
  std::unique_ptr<store::Content> content_;
};

constexpr char kWriteTheLock[] =
    "LMDB's readers take no lock on a read-only file system: back it up on a writable one, or ";

class CopySource final : public Source {
 public:
  // `takes_lock`: LMDB can write to the lock file, as its readers have to.
  CopySource(LockedFile file, const std::string& lock_file, bool takes_lock)
      : file_(std::move(file)),
        had_lock_file_(!lock_file.empty()),
        watch_(takes_lock ? nullptr
                          : std::make_unique<WriteDetector>(*file_.file, false,
                                                            had_lock_file_ ? kWriteTheLock : "")),
        copy_(file_.file->path(), lock_file),
        content_([this](void* to, std::size_t bytes) { return copy_.read(to, bytes); },
                 copy_.expected_bytes()) {}
  void check() const override {
    if (watch_ == nullptr) return;
    watch_->require_unchanged();
    if (!copy_.of_last_transaction())
      fail(Errc::busy, "{}: LMDB has committed to it meanwhile; nothing was kept, try again",
           file_.file->path());
    if (had_lock_file_ || lmdb::lock_file_of(file_.file->path()).empty()) return;
    fail(Errc::busy, "{}: a program has opened it meanwhile; nothing was kept, try again",
         file_.file->path());
  }

 private:
  store::Content& from() const override { return content_; }

  LockedFile file_;
  const bool had_lock_file_;
  // Without a lock file the environment was open in no process, and LMDB does not know of this
  // reader: a writer that started meanwhile may have reused pages before they were read. It has
  // left a lock file, or its writes are detected. On a read-only file system LMDB opens without its
  // lock, and no writer knows of this reader either: there must be none.
  const std::unique_ptr<const WriteDetector> watch_;
  lmdb::Copy copy_;
  mutable store::StreamContent content_;
};

// An environment of LMDB 1.0 that other processes have open.
class ReaderSource final : public Source {
 public:
  static std::unique_ptr<ReaderSource> open(LockedFile& file, const std::string& lock_file) {
    auto end = std::make_unique<base::EndRequest>();
    auto content = lmdb::TransactionContent::open(*file.file, lock_file);
    if (content == nullptr) return nullptr;
    return std::unique_ptr<ReaderSource>(
        new ReaderSource(std::move(file), std::move(end), std::move(content)));
  }
  store::ContentRange next(std::span<std::byte> room) override {
    if (end_->has_come()) fail(Errc::io, "{}: the backup was interrupted", file_.file->path());
    return Source::next(room);
  }
  void check() const override {
    if (file_.file->replaced())
      fail(Errc::busy, "{}: a program has replaced it meanwhile; nothing was kept, try again",
           file_.file->path());
    content_->check();
  }

 private:
  ReaderSource(LockedFile file, std::unique_ptr<base::EndRequest> end,
               std::unique_ptr<lmdb::TransactionContent> content)
      : end_(std::move(end)), file_(std::move(file)), content_(std::move(content)) {}
  store::Content& from() const override { return *content_; }

  const std::unique_ptr<base::EndRequest> end_;  // a killed reader would leave its slot
  LockedFile file_;
  const std::unique_ptr<lmdb::TransactionContent> content_;
};

// No process has the environment open if its lock file cannot be joined: the file is read like any
// other, and a process that opens it meanwhile is detected.
std::unique_ptr<store::Content> open_lmdb_1_0(LockedFile file, const std::string& lock_file) {
  if (!lock_file.empty() && !on_read_only_file_system(lock_file)) {
    if (auto source = ReaderSource::open(file, lock_file)) return source;
  }
  return std::make_unique<PlainSource>(std::move(file), false);
}

}  // namespace

std::unique_ptr<store::Content> open_backup_source(const std::string& given, bool stopped) {
  const std::string path = regular_file(given);
  require_no_journal(path);
  require_no_companions(path);
  LockedFile file(path);
  const auto format = stopped ? std::nullopt : lmdb::data_format(*file.file);
  if (!format) return std::make_unique<PlainSource>(std::move(file), stopped);
  std::string lock_file = lmdb::lock_file_of(std::filesystem::absolute(given).string());
  if (lock_file.empty()) lock_file = lmdb::lock_file_of(path);  // `given` is a link
  if (*format == lmdb::DataFormat::v1_0) return open_lmdb_1_0(std::move(file), lock_file);
  const bool takes_lock = !lock_file.empty() && !on_read_only_file_system(lock_file);
  return std::make_unique<CopySource>(std::move(file), lock_file, takes_lock);
}

}  // namespace vellum::cli
