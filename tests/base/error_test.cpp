#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vellum/error.hpp>

namespace vellum {
namespace {

TEST(Error, CarriesCodeAndMessage) {
  const Error error(Errc::busy, "branch main is held");
  EXPECT_EQ(error.code(), Errc::busy);
  EXPECT_STREQ(error.what(), "branch main is held");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string> names;
  constexpr int kStopped = 14;  // only in C: the callback's exception passes in C++
  for (int code = 0; code <= static_cast<int>(Errc::wrong_key); ++code) {
    if (code == kStopped) continue;
    const std::string name = errc_name(static_cast<Errc>(code));
    EXPECT_NE(name, "unknown") << code;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_STREQ(errc_name(Errc::not_found), "not_found");
  EXPECT_STREQ(errc_name(static_cast<Errc>(-1)), "unknown");
}

}  // namespace
}  // namespace vellum
