// Records which bytes of which files are read. The result depends only on these bytes: corruption
// of others cannot change it. This makes it affordable to flip every bit of a store.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/disk/forwarding_fs.hpp"

namespace vellum::corruption {

// The bytes of each file that were read.
using Trace = std::map<std::string, std::vector<bool>>;

class TracingFs final : public test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  void start(Trace& into) { trace_ = &into; }
  void stop() { trace_ = nullptr; }

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<Traced>(*this, ForwardingFs::open(path, mode));
  }

 private:
  class Traced final : public test::ForwardingFile {
   public:
    Traced(TracingFs& fs, std::unique_ptr<base::File> file)
        : ForwardingFile(std::move(file)), fs_(fs) {}
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      fs_.note(path(), at, out.size());
      ForwardingFile::pread(out, at);
    }
    int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
      fs_.note(path(), at, out.size());
      return ForwardingFile::try_pread(out, at);
    }

   private:
    TracingFs& fs_;
  };

  void note(const std::string& path, std::uint64_t at, std::size_t length) const {
    if (trace_ == nullptr) return;
    auto& bytes = (*trace_)[path];
    if (bytes.size() < at + length) bytes.resize(static_cast<std::size_t>(at + length));
    for (std::size_t i = 0; i < length; ++i) bytes[static_cast<std::size_t>(at) + i] = true;
  }

  Trace* trace_ = nullptr;
};

inline bool was_read(const Trace& trace, const std::string& path, std::uint64_t at) {
  const auto found = trace.find(path);
  return found != trace.end() && at < found->second.size() &&
         found->second[static_cast<std::size_t>(at)];
}

}  // namespace vellum::corruption
