#include "cli/files/backup_source.hpp"

#include <filesystem>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "cli/files/file_family.hpp"
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

// Content that comes from another one.
class Source : public store::Content {
 public:
  Piece next(std::span<std::byte> room) override { return from().next(room); }
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
  PlainSource(std::unique_ptr<base::File> file, bool stopped)
      : file_(std::move(file)), watch_(*file_, stopped), content_(store::content_of(*file_)) {}
  void check() const override { watch_.require_unchanged(); }

 private:
  store::Content& from() const override { return *content_; }

  std::unique_ptr<base::File> file_;
  Watch watch_;
  std::unique_ptr<store::Content> content_;
};

class CopySource final : public Source {
 public:
  // The file is locked, so that no program under vellum run opens it.
  CopySource(std::unique_ptr<base::File> file, const std::string& lock_file)
      : file_(std::move(file)),
        watch_(lock_file.empty() ? std::make_unique<Watch>(*file_, false) : nullptr),
        copy_(file_->path(), lock_file),
        content_([this](void* to, std::size_t bytes) { return copy_.read(to, bytes); },
                 copy_.expected_bytes()) {}
  void check() const override {
    if (watch_ == nullptr) return;
    watch_->require_unchanged();
    if (lmdb::lock_file_of(file_->path()).empty()) return;
    fail(Errc::busy, "{}: somebody has opened it meanwhile; nothing was kept, try again",
         file_->path());
  }

 private:
  store::Content& from() const override { return content_; }

  std::unique_ptr<base::File> file_;
  // Without a lock file the environment was not open anywhere, and LMDB does not know of this
  // reader: a writer that came meanwhile may have reused pages that were still to be read. It has
  // left a lock file, or its writes are detected.
  const std::unique_ptr<const Watch> watch_;
  lmdb::Copy copy_;
  mutable store::StreamContent content_;
};

}  // namespace

std::unique_ptr<store::Content> open_backup_source(const std::string& given, bool stopped) {
  const std::string path = regular_file(given);
  require_no_journal(path);
  require_alone(path);
  auto file = open_shared(path);
  if (stopped || !lmdb::is_data(*file))
    return std::make_unique<PlainSource>(std::move(file), stopped);
  std::string lock_file = lmdb::lock_file_of(std::filesystem::absolute(given).string());
  if (lock_file.empty()) lock_file = lmdb::lock_file_of(path);  // `given` is a link
  return std::make_unique<CopySource>(std::move(file), lock_file);
}

}  // namespace vellum::cli
