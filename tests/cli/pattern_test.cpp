// The library's own patterns match like those of fnmatch(3), in ASCII.
#include "run/run/pattern.hpp"

#include <fnmatch.h>

#include <gtest/gtest.h>

namespace vellum::cli_test {
namespace {

TEST(Pattern, MatchesLikeFnmatch) {
  const char* const patterns[] = {
      "",      "*",      "**",    "?",      "a",           "/a/*.db",      "*/data.mdb",    "a*b*c",
      "[abc]", "[!abc]", "[^a]b", "[a-c]x", "x[]]y",       "[a-]",         "a\\*b",         "\\[a]",
      "[",     "[a",     "a[",    "*[0-9]", "f.*",         "[[:digit:]]*", "x[[:alpha:]_]", "[!]]",
      "a?c",   "*a*",    "[\\]]", "*.[ch]", "/tmp/x[1].db"};
  const char* const texts[] = {"",        "a",         "b",           "ab",          "abc", "aXbYc",
                               "/a/b.db", "/a/b/c.db", "/x/data.mdb", "]",           "x]y", "-",
                               "a*b",     "[a]",       "[",           "[a",          "a[",  "f.1",
                               "7up",     "x_",        "xz",          "a/c",         "bx",  "dx",
                               "main.c",  "main.x",    "/tmp/x1.db",  "/tmp/x[1].db"};
  for (const char* const pattern : patterns)
    for (const char* const text : texts)
      EXPECT_EQ(fnmatch(pattern, text, 0) == 0, preload::matches(pattern, text))
          << "'" << pattern << "' and '" << text << "'";
}

}  // namespace
}  // namespace vellum::cli_test
