// A base directory for Privateer objects, and environment variables that are restored.
#pragma once

#include <gtest/gtest.h>
#include <privateer/privateer.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "support/store_fixture.hpp"

namespace vellum::test {

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class PrivateerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBlock = 2 * kMiB;

  std::string base() const { return directory_ / "base"; }
  std::string path_of(const std::string& version) const { return base() + "/" + version; }
  Store store() const { return Store::open(base() + "/blocks"); }

  static std::uint64_t* words(void* region) { return static_cast<std::uint64_t*>(region); }
  // The first word of a version, read by an object of its own.
  std::uint64_t first_word(const std::string& version) const {
    Privateer reader(Privateer::OPEN, base().c_str());
    return words(reader.open_read_only(nullptr, version.c_str()))[0];
  }
  void make(const std::string& version, std::uint64_t first) const {
    Privateer maker(Privateer::CREATE, base().c_str());
    words(maker.create(nullptr, version.c_str(), kBlock, false))[0] = first;
  }

  TempDirectory directory_{memory_directory()};
};

}  // namespace vellum::test
