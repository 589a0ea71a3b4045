#include "cli/top/sample.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <tuple>
#include <vellum/region_options.hpp>

#include "base/files/real_path.hpp"
#include "base/parse_number.hpp"
#include "format/wire/types.hpp"
#include "memory/kernel/kernel.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;
using format::kPageBytes;
using region::statistics::Page;
using region::statistics::Slot;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::vector<pid_t> all_processes() {
  std::vector<pid_t> processes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    // Other directories do not belong to a process.
    if (const auto process = base::parse_number<pid_t>(entry.path().filename().native())) {
      processes.push_back(*process);
    }
  }
  std::sort(processes.begin(), processes.end());
  return processes;
}

// A process's own number, in its own namespace; 0: it has ended.
std::uint32_t own_number_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::uint32_t own = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(6));
    while (numbers >> own) {
    }
  }
  return own;
}

std::string program_of(pid_t process) {
  std::ifstream comm("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

bool read_page(int fd, Page& page) {
  return ::pread(fd, static_cast<void*>(&page), sizeof page, 0) ==
         static_cast<ssize_t>(sizeof page);
}

// Whether it has this build's format and belongs to this process: a child inherits its parent's
// page.
bool is_sound(const Page& page, pid_t process) {
  return page.magic == region::statistics::kMagic && page.slot_bytes == sizeof(Slot) &&
         page.slots == region::statistics::kSlots && page.process == own_number_of(process);
}

template <std::size_t size>
std::string text_of(const std::array<char, size>& text) {
  return std::string(text.data(), ::strnlen(text.data(), size));
}

const char* engine_of(std::uint32_t number) {
  return number <= static_cast<std::uint32_t>(Engine::mapped)
             ? engine_name(static_cast<Engine>(number))
             : "unknown";
}

RegionCounts counts_of(const Slot& slot) {
  RegionCounts counts;
  counts.region_bytes = slot.region_bytes;
  counts.resident_bytes = slot.resident_pages * kPageBytes;
  counts.spilled_bytes = slot.spilled_pages * kPageBytes;
  counts.backlog_bytes = slot.backlog_bytes;
  counts.commits = slot.commits;
  counts.pages_dirty = slot.pages_dirty;
  counts.pages_changed = slot.pages_changed;
  counts.bytes_written = slot.bytes_written;
  counts.commit_ns = slot.commit_ns;
  counts.flush_ns = slot.flush_ns;
  counts.spill_written_bytes = slot.spill_written_bytes;
  for (const auto& stripe : slot.stripes) {
    counts.chunks_in += stripe.chunks_in;
    counts.chunks_out += stripe.chunks_out;
    for (std::size_t kind = 0; kind < counts.faults.size(); ++kind)
      counts.faults[kind] += stripe.faults[kind];
  }
  return counts;
}

// The region's own count if it has one, as where the kernel does not track its pages. An older
// library does not say that it counts, but it does with engine sigsegv.
std::optional<std::uint64_t> dirty_pages_of(const Slot& slot, const Descriptor& pagemap) {
  if (slot.writable == 0) return 0;
  if (slot.counts_dirty != 0 || slot.engine == static_cast<std::uint32_t>(Engine::sigsegv)) {
    std::uint64_t opened = 0, closed = 0;
    for (const auto& stripe : slot.stripes) {
      opened += stripe.pages_opened;
      closed += stripe.pages_closed;
    }
    return opened - std::min(opened, closed);
  }
  const std::uint64_t begin = slot.address, bytes = slot.region_bytes;
  if (begin + bytes < begin) return std::nullopt;
  return region::count_written(pagemap.fd, begin, begin + bytes);
}

RegionSample sample_of(const Slot& slot, std::size_t index, const Descriptor& pagemap) {
  RegionSample sample;
  sample.store = text_of(slot.store);
  sample.version = text_of(slot.version);
  sample.writable = slot.writable != 0;
  sample.engine = engine_of(slot.engine);
  sample.id = index << 32 | slot.serial;
  sample.counts = counts_of(slot);
  sample.counts.dirty_pages = dirty_pages_of(slot, pagemap);
  return sample;
}

// A slot counts if the same region had it at both reads.
std::vector<RegionSample> regions_in(const Page& first, const Page& then,
                                     const Descriptor& pagemap) {
  std::vector<RegionSample> samples;
  for (std::size_t i = 0; i < first.slot.size(); ++i) {
    const Slot &a = first.slot[i], &b = then.slot[i];
    if (a.state != Slot::in_use || b.state != Slot::in_use || a.serial != b.serial) continue;
    samples.push_back(sample_of(b, i, pagemap));
  }
  return samples;
}

// Null: the descriptor is not a page of counters. Never blocks, whatever it refers to.
std::unique_ptr<Descriptor> open_page(const fs::path& link) {
  std::error_code error;
  const std::string target = fs::read_symlink(link, error).string();
  const std::string wanted = std::string("/memfd:") + region::statistics::kFileName + " (deleted)";
  if (error || target != wanted) return nullptr;
  const int fd = ::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return nullptr;
  auto opened = std::make_unique<Descriptor>(fd);
  struct stat status{};
  const bool fits = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                    status.st_size == static_cast<off_t>(sizeof(Page));
  return fits ? std::move(opened) : nullptr;
}

std::vector<RegionSample> regions_of(pid_t process) {
  std::error_code ignored;
  const std::string directory = "/proc/" + std::to_string(process);
  const auto first = std::make_unique<Page>(), then = std::make_unique<Page>();
  for (const auto& entry : fs::directory_iterator(directory + "/fd", ignored)) {
    const auto opened = open_page(entry.path());
    if (opened == nullptr || !read_page(opened->fd, *first) || !read_page(opened->fd, *then) ||
        !is_sound(*first, process))
      continue;
    const Descriptor pagemap{::open((directory + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)};
    return regions_in(*first, *then, pagemap);
  }
  return {};
}

}  // namespace

std::vector<RegionSample> sample_regions(pid_t process, const std::string& store) {
  const std::string wanted = store.empty() ? "" : base::real_path(store);
  std::vector<RegionSample> all;
  for (const pid_t each : process != 0 ? std::vector<pid_t>{process} : all_processes()) {
    for (RegionSample& sample : regions_of(each)) {
      if (!wanted.empty() && base::real_path(sample.store) != wanted) continue;
      sample.process = each;
      sample.program = program_of(each);
      all.push_back(std::move(sample));
    }
  }
  std::sort(all.begin(), all.end(), [](const RegionSample& a, const RegionSample& b) {
    return std::tie(a.process, a.version, a.id) < std::tie(b.process, b.version, b.id);
  });
  return all;
}

}  // namespace vellum::cli
