// What a core dump of a process has that reads an encrypted store: pages, and no secret.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/crypto/hkdf.hpp"
#include "run/run_lib.hpp"
#include "store/catalog/store_directory.hpp"
#include "vellum/key.hpp"

namespace vellum::cli_test {
namespace {

using base::Secret;

// Not in memory of this process that a child could inherit.
Secret secret_text(std::string_view text) { return Secret(std::as_bytes(std::span(text))); }

struct Sought {
  std::string name;
  Secret bytes;
  bool is_found = false;
};

// Bytes of one mapping, or of a core.
void seek_in(std::span<const char> bytes, std::vector<Sought>& all) {
  for (Sought& one : all) {
    one.is_found = one.is_found || ::memmem(bytes.data(), bytes.size(), one.bytes.bytes().data(),
                                            one.bytes.size()) != nullptr;
  }
}

std::vector<std::string> found_in(const std::vector<Sought>& all) {
  std::vector<std::string> out;
  for (const Sought& one : all) {
    if (one.is_found) out.push_back(one.name);
  }
  return out;
}

struct Mapping {
  std::uintptr_t from = 0, to = 0;
  bool is_readable = true, is_dumped = true;
};

std::vector<Mapping> mappings_of(pid_t process) {
  std::vector<Mapping> out;
  std::ifstream maps("/proc/" + std::to_string(process) + "/smaps");
  for (std::string line; std::getline(maps, line);) {
    Mapping next;
    char readable = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %c", &next.from, &next.to, &readable) == 3) {
      next.is_readable = readable == 'r';
      out.push_back(next);
    }
    if (line.starts_with("VmFlags:") && !out.empty()) {
      out.back().is_dumped = !contains(line + " ", " dd ");
    }
  }
  return out;
}

// What the kernel refuses to read, as of its own pages, is left out.
void seek_in_memory(pid_t process, bool dumped_only, std::vector<Sought>& all) {
  const int memory =
      ::open(("/proc/" + std::to_string(process) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(memory, 0);
  constexpr std::size_t kOverlap = 4096;
  std::vector<char> bytes(1u << 20);
  for (const Mapping& mapping : mappings_of(process)) {
    if (!mapping.is_readable || (dumped_only && !mapping.is_dumped)) continue;
    for (std::uintptr_t at = mapping.from; at < mapping.to; at += bytes.size() - kOverlap) {
      const std::size_t wanted = std::min<std::size_t>(bytes.size(), mapping.to - at);
      const ssize_t n = ::pread(memory, bytes.data(), wanted, static_cast<off_t>(at));
      if (n <= 0) break;
      seek_in(std::span(bytes).first(static_cast<std::size_t>(n)), all);
    }
  }
  ::explicit_bzero(bytes.data(), bytes.size());
  ::close(memory);
}

// `vellum cat` that waits for the reader of its output, in the middle of a version.
class KeyMemory : public CliTest {
 protected:
  KeyMemory() {
    const std::string passphrase = file("passphrase", "a passphrase of four words\n");
    const std::string key = file("key", noise(1, 7).substr(0, 64));
    const Arguments with_key{"--key-file", key};
    must({"init", store_, "--encrypt", "--key-file", key});
    must({"--key-file", key, "import", store_, "main", file("content", content_), "--snapshot",
          "v1"});
    must({"--key-file", key, "key", "add", store_, "--new-passphrase-file", passphrase});
    KeySource source;
    source.key_file = key;
    set_key_source(source);
    const auto opened = store::StoreDirectory::open(base::posix_fs(), store_);
    const Secret& data_key = opened->keys()->data_key();
    secrets_.push_back({"data key", Secret(data_key.bytes())});
    for (const char* kind : {"vellum pack", "vellum journal", "vellum file", "vellum nonce"}) {
      Secret derived(base::kKeyBytes);
      base::hkdf_sha256(data_key.bytes(), {}, kind, derived.bytes());
      secrets_.push_back({kind, std::move(derived)});
    }
    secrets_.push_back({"passphrase", secret_text("a passphrase of four words")});
    content_page_.push_back({"a page", secret_text(std::string_view(content_).substr(4096, 64))});
    start(passphrase);
  }
  ~KeyMemory() override {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(output_);
    set_key_source(KeySource());
  }

  void start(const std::string& passphrase) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = ends[0];
    const int capacity = ::fcntl(ends[1], F_GETPIPE_SZ);
    process_ = ::fork();
    if (process_ == 0) {
      ::setsid();
      ::dup2(ends[1], STDOUT_FILENO);
      const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
      ::setrlimit(RLIMIT_CORE, &unlimited);
      if (::chdir(directory_.c_str()) != 0) ::_exit(99);
      become_vellum({"--passphrase-file", passphrase, "cat", store_, "v1"});
    }
    ::close(ends[1]);
    // A full pipe: it has read pages of the version, and cannot write more.
    for (int filled = 0; filled < capacity && ::waitpid(process_, nullptr, WNOHANG) == 0;) {
      ::ioctl(output_, FIONREAD, &filled);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(::waitpid(process_, nullptr, WNOHANG), 0) << "it has ended";
  }

  const std::string content_ = noise(512, 1), store_ = path("s");
  std::vector<Sought> secrets_, content_page_;
  pid_t process_ = -1;
  int output_ = -1;
};

TEST_F(KeyMemory, NoCoreHasTheSecretsNoSanitizer) {
  seek_in_memory(process_, true, content_page_);
  EXPECT_EQ(found_in(content_page_), std::vector<std::string>{"a page"}) << "the search finds";
  seek_in_memory(process_, true, secrets_);
  EXPECT_EQ(found_in(secrets_), std::vector<std::string>()) << "in memory that a core has";
  // A debugger reads all memory: the keys are there.
  seek_in_memory(process_, false, secrets_);
  EXPECT_TRUE(secrets_.front().is_found);
}

// The kernel's own dump, where it puts one into the directory of the process.
TEST_F(KeyMemory, TheKernelsCoreHasNoSecretsNoSanitizer) {
  const std::string pattern = read_file("/proc/sys/kernel/core_pattern");
  if (pattern.starts_with("|") || contains(pattern, "/")) {
    GTEST_SKIP() << "cores go to " << pattern;
  }
  ASSERT_EQ(::kill(process_, SIGABRT), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(process_, &status, 0), process_);
  if (!WCOREDUMP(status)) GTEST_SKIP() << "the kernel wrote no core";
  std::string core;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().filename().string().starts_with("core")) core = read_file(entry.path());
  }
  ASSERT_FALSE(core.empty());
  seek_in(core, content_page_);
  EXPECT_EQ(found_in(content_page_), std::vector<std::string>{"a page"}) << "the search finds";
  seek_in(core, secrets_);
  EXPECT_EQ(found_in(secrets_), std::vector<std::string>());
}

}  // namespace
}  // namespace vellum::cli_test
