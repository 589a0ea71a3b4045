// EXPECT_ERRC(statement, code): the statement, an expression, throws vellum::Error with that code.
#pragma once

#include <gtest/gtest.h>

#include <vellum/error.hpp>

#define EXPECT_ERRC(statement, expected)                                                        \
  try {                                                                                         \
    static_cast<void>(statement);                                                               \
    ADD_FAILURE() << #statement " does not throw";                                              \
  } catch (const vellum::Error& error) {                                                        \
    EXPECT_STREQ(vellum::errc_name(error.code()), vellum::errc_name(expected)) << error.what(); \
  }                                                                                             \
  static_assert(true, "wants a semicolon")

// The same, and its message has the text `part`.
#define EXPECT_ERROR(statement, expected, part)                                              \
  try {                                                                                      \
    static_cast<void>(statement);                                                            \
    ADD_FAILURE() << #statement " does not throw";                                           \
  } catch (const vellum::Error& error) {                                                     \
    EXPECT_STREQ(vellum::errc_name(error.code()), vellum::errc_name(vellum::Errc::expected)) \
        << error.what();                                                                     \
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();      \
  }                                                                                          \
  static_assert(true, "wants a semicolon")
