// A store in a temporary directory; the parameter is the engine of its regions.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "support/engines.hpp"

namespace vellum::test {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kMiB = 1u << 20;

inline std::byte* bytes_of(const Region& region) { return static_cast<std::byte*>(region.data()); }

inline std::uint64_t& word_at(const Region& region, std::uint64_t offset_bytes) {
  return *reinterpret_cast<std::uint64_t*>(bytes_of(region) + offset_bytes);
}

inline std::vector<std::byte> content_of(const Region& region) {
  return {bytes_of(region), bytes_of(region) + region.size_bytes()};
}

// By Store's reading functions, not through memory.
inline std::vector<std::byte> content_of(const Store& store, const std::string& version) {
  std::vector<std::byte> content(store.version(version).region_bytes);
  store.read(version, 0, content.data(), content.size());
  return content;
}

inline bool all_zero(const std::byte* at, std::uint64_t length_bytes) {
  return length_bytes == 0 ||
         (at[0] == std::byte{0} && std::memcmp(at, at + 1, length_bytes - 1) == 0);
}

// EXPECT_ERRC, and the message contains every one of the texts.
template <typename Body>
void expect_error(Errc code, const std::vector<std::string>& texts, Body body) {
  try {
    body();
    ADD_FAILURE() << "does not throw " << errc_name(code);
  } catch (const Error& error) {
    EXPECT_STREQ(errc_name(error.code()), errc_name(code)) << error.what();
    for (const auto& text : texts) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
          << "'" << text << "' is not in: " << error.what();
    }
  }
}

class StoreTest : public EngineTest {
 protected:
  RegionOptions options() const {
    RegionOptions options;
    options.engine = GetParam();
    options.capacity_bytes = 256 * kMiB;
    return options;
  }
  std::string path() const { return directory_ / "store"; }
  Store create(const StoreOptions& store_options = StoreOptions()) const {
    return Store::create(path(), store_options);
  }

  TempDirectory directory_;
};

}  // namespace vellum::test
