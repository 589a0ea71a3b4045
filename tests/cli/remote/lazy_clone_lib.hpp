// A completely pushed store, and its lazy clone.
#pragma once

#include <cstdlib>

#include "run/run_lib.hpp"
#include "support/s3_url.hpp"

namespace vellum::cli_test {

// `Test` is CliTest, or derives from it.
template <typename Test>
class OfLazyClone : public Test {
 protected:
  void TearDown() override { unsetenv("VELLUM_CACHE_DIR"); }
  void clone_from(const std::string& where) {
    url = where;
    must({"remote", "add", source, "origin", url});
    must({"push", source, "--all"});
    ASSERT_EQ(setenv("VELLUM_CACHE_DIR", this->path("cache").c_str(), 1), 0);
    must({"clone", "--lazy", url, clone});
  }

  const std::string source = this->make_store_with({noise(100, 1), noise(100, 2)});
  const std::string clone = this->path("clone");
  std::string url;
};

// The parameter: whether the remote is at the real server.
template <typename Test>
class AtEachRemote : public OfLazyClone<Test>, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Test::SetUp();
    if (this->IsSkipped()) return;
    const std::string where = test::new_remote_url(GetParam(), this->path("remote"));
    if (where.empty()) GTEST_SKIP() << test::kNoS3;
    this->clone_from(where);
  }
};

}  // namespace vellum::cli_test
