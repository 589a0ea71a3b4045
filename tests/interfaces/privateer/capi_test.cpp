// Privateer's C interface does what its C++ interface does; a failure is a value and a message.
#include <privateer/c_api/privateer.h>

#include "interfaces/privateer/fixture.hpp"

namespace vellum::test {
namespace {

class PrivateerC : public PrivateerTest {};

TEST_F(PrivateerC, TheCInterfaceMatchesTheClass) {
  EXPECT_EQ(get_privateer_action_create(), CREATE);
  EXPECT_EQ(get_privateer_action_open(), OPEN);
  void* privateer = get_privateer_object(CREATE, base().c_str());
  ASSERT_NE(privateer, nullptr) << privateer_last_error();
  EXPECT_EQ(privateer_version_exists("v0", privateer), 0);
  void* data = privateer_create(privateer, nullptr, "v0", kBlock, 0);
  ASSERT_NE(data, nullptr) << privateer_last_error();
  EXPECT_EQ(privateer_data(privateer), data);
  EXPECT_EQ(privateer_region_size(privateer), kBlock);
  words(data)[0] = 1;
  privateer_msync(privateer);
  EXPECT_STREQ(privateer_last_error(), "");
  EXPECT_EQ(privateer_snapshot(privateer, "v1"), 1);
  EXPECT_EQ(privateer_snapshot(privateer, "v1"), 0);
  EXPECT_STREQ(privateer_last_error(), "");
  words(data)[0] = 2;
  delete_privateer_object(privateer);
  privateer = get_privateer_object(OPEN, base().c_str());
  EXPECT_EQ(privateer_version_exists("v1", privateer), 1);
  EXPECT_EQ(privateer_version_capacity(privateer, path_of("v1").c_str()), kBlock);
  EXPECT_EQ(version_block_size(path_of("v1").c_str()), kBlock);
  EXPECT_EQ(words(privateer_open(privateer, nullptr, "v0"))[0], 2u);
  EXPECT_EQ(words(privateer_open_read_only(privateer, nullptr, "v1"))[0], 1u);
  EXPECT_EQ(words(privateer_open_immutable(privateer, nullptr, "v1", "v2"))[0], 1u);
  EXPECT_EQ(privateer_create(privateer, nullptr, "v2", kBlock, 0), nullptr);
  EXPECT_NE(privateer_create(privateer, nullptr, "v2", kBlock, 1), nullptr);
  delete_privateer_object(privateer);
}

TEST_F(PrivateerC, FailuresReturnValuesAndAMessage) {
  const auto says = [](const std::string& what) {
    const bool found = std::string(privateer_last_error()).find(what) != std::string::npos;
    EXPECT_TRUE(found) << privateer_last_error();
  };
  EXPECT_EQ(get_privateer_object(OPEN, base().c_str()), nullptr);
  says(base());
  EXPECT_EQ(get_privateer_object(CREATE, nullptr), nullptr);
  says("base_path");
  void* const privateer = get_privateer_object(CREATE, base().c_str());
  EXPECT_STREQ(privateer_last_error(), "");
  EXPECT_EQ(privateer_open(privateer, nullptr, "v0"), nullptr);
  says(path_of("v0"));
  EXPECT_EQ(privateer_open_read_only(privateer, nullptr, "v0"), nullptr);
  EXPECT_EQ(privateer_open_immutable(privateer, nullptr, "v0", "v1"), nullptr);
  privateer_msync(privateer);  // nothing to do
  EXPECT_STREQ(privateer_last_error(), "");
  EXPECT_EQ(privateer_snapshot(privateer, "v1"), 0);
  says("snapshot");
  EXPECT_EQ(privateer_region_size(privateer), 0u);
  EXPECT_EQ(privateer_version_capacity(privateer, path_of("v0").c_str()), UINT64_MAX);
  says(path_of("v0"));
  EXPECT_EQ(version_block_size(nullptr), UINT64_MAX);
  EXPECT_EQ(privateer_data(nullptr), nullptr);
  says("NULL");
  delete_privateer_object(privateer);
  delete_privateer_object(nullptr);
}

}  // namespace
}  // namespace vellum::test
