// A store with a branch `main`, by the C interface.
#pragma once

#include <gtest/gtest.h>
#include <vellum/vellum.h>

#include <cstdint>
#include <string>

#include "base/temp_directory.hpp"

namespace vellum::test {

inline constexpr std::uint64_t kCRegionBytes = 1 << 20;

class CApiTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = directory_.path() + "/store";
    ASSERT_EQ(vellum_store_create(path_.c_str(), nullptr, &store_), VELLUM_OK) << message();
    // The default does not fit under ThreadSanitizer.
    options_.capacity_bytes = 64 * kCRegionBytes;
    ASSERT_EQ(vellum_region_create(store_, "main", kCRegionBytes, &options_, &region_), VELLUM_OK)
        << message();
  }
  void TearDown() override {
    vellum_region_close(region_);
    vellum_store_close(store_);
  }

  static std::string message() { return vellum_error_message(); }
  std::uint64_t* words() { return static_cast<std::uint64_t*>(vellum_region_data(region_)); }

  TempDirectory directory_;
  std::string path_;
  vellum_store* store_ = nullptr;
  vellum_region* region_ = nullptr;
  vellum_region_options options_ = VELLUM_REGION_OPTIONS_INIT;
};

}  // namespace vellum::test
