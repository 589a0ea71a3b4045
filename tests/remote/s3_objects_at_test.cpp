// The objects of a bucket as they were at a time.
#include <gtest/gtest.h>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/expect_error.hpp"
#include "base/utc_time.hpp"
#include "remote/engine/objects_at.hpp"
#include "remote/engine/url.hpp"
#include "remote/s3_history_lib.hpp"

namespace vellum::remote::test {
namespace {

std::vector<std::byte> content_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string content_key(const std::string& content) {
  return "pieces/00000001-" + base::hex(base::sha256(content_bytes(content)));
}

class ObjectsAtTest : public testing::Test {
 protected:
  std::unique_ptr<ObjectStore> at(ServerTime time) const {
    return objects_at(make_s3_engine(place.server.options()), time);
  }
  // The next change comes later. Returns a time between.
  ServerTime pass() {
    const ServerTime out = place.history.now() + std::chrono::seconds(1);
    place.history.ahead_s += 10;
    return out;
  }
  std::string text(ObjectStore& objects, const std::string& key) {
    const auto bytes = objects.get(key, 1 << 20);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  VersionedServer place;
  std::unique_ptr<VersionedObjects> now = make_s3_engine(place.server.options());
};

TEST_F(ObjectsAtTest, ReadsWhatWasThere) {
  now->put("heads/a", content_bytes("one"));
  const ServerTime first = pass();
  now->put("heads/a", content_bytes("two two"));
  now->put("heads/b", content_bytes("b"));
  const ServerTime second = pass();
  now->remove("heads/a");
  now->remove("heads/b");
  const ServerTime third = pass();
  now->put("heads/a", content_bytes("four"));
  const ServerTime fourth = pass();
  for (const bool deletions_last : {false, true}) {
    for (const std::size_t most : {1u, 2u, 3u, 1000u}) {
      place.history.deletions_last = deletions_last;
      place.history.most_listed = most;
      EXPECT_EQ(text(*at(first), "heads/a"), "one");
      EXPECT_EQ(at(first)->list("heads/", 9), (std::vector<ObjectInfo>{{"heads/a", 3}}));
      EXPECT_EQ(text(*at(second), "heads/a"), "two two");
      EXPECT_EQ(at(second)->list("", 9), (std::vector<ObjectInfo>{{"heads/a", 7}, {"heads/b", 1}}));
      EXPECT_EQ(at(second)->list("", 1), (std::vector<ObjectInfo>{{"heads/a", 7}}));
      EXPECT_ERROR(at(third)->get("heads/a", 99), not_found, "heads/a");
      EXPECT_TRUE(at(third)->list("", 9).empty());
      EXPECT_EQ(text(*at(fourth), "heads/a"), "four");
      EXPECT_ERROR(at(first - std::chrono::hours(1))->get("heads/a", 99), not_found, "heads/a");
    }
  }
  EXPECT_EQ(at(second)->get_range("heads/a", {4, 3}), content_bytes("two"));
  EXPECT_EQ(at(second)->get_start("heads/a", 3), content_bytes("two"));
  EXPECT_ERROR(at(second)->get("heads/a", 3), corrupted, "heads/a");
}

TEST_F(ObjectsAtTest, CannotBeChanged) {
  now->put("heads/a", content_bytes("one"));
  const auto then = at(pass());
  EXPECT_ERROR(then->put("heads/a", {}), read_only, "heads/a");
  EXPECT_ERROR(then->put_if_absent("heads/b", {}), read_only, "heads/b");
  EXPECT_ERROR(then->remove("heads/a"), read_only, "heads/a");
  EXPECT_EQ(place.history.all().size(), 1U);
}

// What a thief has put over it, or deleted, before that time or later.
TEST_F(ObjectsAtTest, ContentIsItsOldestVersion) {
  const std::string key = content_key("the content");
  now->put(key, content_bytes("the content"));
  pass();
  now->put(key, content_bytes("NOT content"));
  const ServerTime forged = pass();
  now->remove(key);
  const ServerTime deleted = pass();
  now->put(key, content_bytes("again, no"));
  const ServerTime last = pass();
  for (const ServerTime time : {forged, deleted, last}) {
    EXPECT_EQ(text(*at(time), key), "the content");
    EXPECT_EQ(at(time)->get_range(key, {4, 7}), content_bytes("content"));
    EXPECT_EQ(at(time)->get_start(key, 3), content_bytes("the"));
    EXPECT_EQ(at(time)->list("pieces/", 9), (std::vector<ObjectInfo>{{key, 11}}));
  }
  // It never changes, so the time does not matter: some servers change that of a version.
  EXPECT_EQ(text(*at(forged - std::chrono::hours(1)), key), "the content");
}

// A damaged object that was replaced by a repair, or a forger who was faster.
TEST_F(ObjectsAtTest, TheHashDecidesBetweenVersions) {
  const std::string key = content_key("the content");
  now->put(key, content_bytes("damaged"));
  pass();
  now->put(key, content_bytes("the content"));
  const auto then = at(pass());
  EXPECT_EQ(then->get_range(key, {0, 3}), content_bytes("the"));
  EXPECT_EQ(text(*then, key), "the content");
  EXPECT_EQ(text(*at(pass()), key), "the content");
}

// A thief has put many versions before the right one, which is then the newest of its time; or after
// it, which is then the oldest.
TEST_F(ObjectsAtTest, ManyForgedVersionsHideNothing) {
  const std::string key = content_key("the content"), there = "pre/fix/" + key;
  const auto put_forged = [&](bool is_newest) {
    for (int i = 0; i < 20; ++i)
      place.history.add(there, "no content", place.history.now(), is_newest);
  };
  now->put(key, content_bytes("the content"));
  put_forged(false);
  const auto then = at(pass());
  EXPECT_EQ(text(*then, key), "the content");
  EXPECT_EQ(then->get_range(key, {0, 3}), content_bytes("the"));
  EXPECT_EQ(at(pass())->list("pieces/", 9), (std::vector<ObjectInfo>{{key, 11}}));
  const std::string other = content_key("other content");
  now->put(other, content_bytes("other content"));
  const ServerTime before = pass();
  for (int i = 0; i < 20; ++i) now->put(other, content_bytes("no content"));
  EXPECT_EQ(text(*at(before), other), "other content");
  EXPECT_EQ(text(*at(pass()), other), "other content");
}

// Where names are sealed, who has the key chooses.
TEST_F(ObjectsAtTest, AVersionCanBeChosen) {
  const std::string key = "pieces/00000001-" + std::string(96, 'a');
  now->put(key, content_bytes("rotten"));
  pass();
  now->put(key, content_bytes("repaired"));
  const ServerTime repaired = pass();
  now->put(key, content_bytes("forged"));
  const auto then = at(pass());
  EXPECT_EQ(text(*at(repaired), key), "repaired");
  std::set<std::string> texts;
  for (std::size_t i = 0; then->use_version(key, i); ++i) texts.insert(text(*then, key));
  EXPECT_EQ(texts, (std::set<std::string>{"rotten", "repaired", "forged"}));
  now->put("heads/a", content_bytes("one"));
  EXPECT_FALSE(at(pass())->use_version("heads/a", 0));
}

// Of a key with more versions than are kept in memory: the newest, the oldest, and that of the time.
TEST_F(ObjectsAtTest, AnyNumberOfVersionsIsNoError) {
  const std::string there = "pre/fix/heads/a";
  const ServerTime begin = place.history.now();
  constexpr int kVersions = 12'000;
  for (int i = 0; i < kVersions; ++i) {
    place.history.add(there, std::to_string(i), begin + std::chrono::seconds(i), true);
  }
  place.history.ahead_s += kVersions;
  for (const int i : {0, 1, 700, 5'000, 9'999, kVersions - 1}) {
    EXPECT_EQ(text(*at(begin + std::chrono::seconds(i)), "heads/a"), std::to_string(i));
  }
}

// As at Ceph before 2023.
TEST_F(ObjectsAtTest, ContentIsThereAlthoughItsTimeWasChanged) {
  place.history.moves_times = true;
  const std::string key = content_key("the content");
  now->put(key, content_bytes("the content"));
  const ServerTime before = pass();
  now->lock_until({key, place.history.all().at("pre/fix/" + key).back().id},
                  place.history.now() + std::chrono::hours(1));
  EXPECT_EQ(text(*at(before), key), "the content");
}

TEST_F(ObjectsAtTest, ManyObjectsAreListedOnce) {
  constexpr int kObjects = 300;
  for (int i = 0; i < kObjects; ++i) {
    now->put(content_key(std::to_string(i)), content_bytes(std::to_string(i)));
  }
  const auto then = at(pass());
  const std::uint64_t before = place.server.requests();
  for (int i = 0; i < kObjects; ++i) {
    EXPECT_EQ(text(*then, content_key(std::to_string(i))), std::to_string(i));
  }
  EXPECT_LT(place.server.requests() - before, 420U);
}

TEST_F(ObjectsAtTest, ABucketWithoutVersionsIsRefused) {
  place.history.has_versions = false;
  now->put("heads/a", content_bytes("one"));
  EXPECT_ERROR(at(pass())->get("heads/a", 99), unsupported, "versioning is not enabled");
  EXPECT_ERROR(at(pass())->list("", 9), unsupported, "versioning is not enabled");
}

// As at versitygw, whose replaced versions have the time of their replacement.
TEST_F(ObjectsAtTest, TheTimeInAnIdCounts) {
  place.server.answer = [](const S3Request& request) -> std::optional<S3Server::Answer> {
    if (request.query.contains("versioning")) {
      return S3Server::Answer{200, "<Status>Enabled</Status>", ""};
    }
    // Of 2026-11-28T19:51:36Z, ...:38Z, and no such id.
    return S3Server::Answer{
        200,
        "<ListVersionsResult><Version><Key>pre/fix/heads/a</Key><IsLatest>true</IsLatest>"
        "<VersionId>01M8HVD5RGDAN9PCS6VE06ZMHP</VersionId><Size>2</Size>"
        "<LastModified>2026-11-28T19:51:38Z</LastModified></Version>"
        "<Version><Key>pre/fix/heads/a</Key><IsLatest>false</IsLatest>"
        "<VersionId>01M8HVD3MCBDP4JG3FEA9BY40Q</VersionId><Size>1</Size>"
        "<LastModified>2026-11-28T19:51:38Z</LastModified></Version>"
        "<Version><Key>pre/fix/heads/b</Key><IsLatest>true</IsLatest>"
        "<VersionId>01M8HVD3MCBDP4JG3FEA9BY4!Q</VersionId><Size>3</Size>"
        "<LastModified>2026-11-28T19:51:38Z</LastModified></Version></ListVersionsResult>",
        ""};
  };
  const ServerTime between = *base::parse_utc_time("2026-11-28T19:51:37Z");
  EXPECT_EQ(at(between)->list("", 9), (std::vector<ObjectInfo>{{"heads/a", 1}}));
  EXPECT_EQ(at(between + std::chrono::seconds(2))->list("", 9),
            (std::vector<ObjectInfo>{{"heads/a", 2}, {"heads/b", 3}}));
}

TEST_F(ObjectsAtTest, AHostileListingEnds) {
  const ServerTime time = pass();
  const auto answer_with = [&](const std::string& listing) {
    place.server.answer = [listing](const S3Request& request) -> std::optional<S3Server::Answer> {
      if (!request.query.contains("versions"))
        return S3Server::Answer{200, "<Status>Enabled</Status>", ""};
      return S3Server::Answer{200, "<ListVersionsResult>" + listing + "</ListVersionsResult>", ""};
    };
  };
  const std::string key = "<Key>pre/fix/heads/a</Key>", size = "<Size>1</Size>",
                    id = "<VersionId>x</VersionId>",
                    when = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>";
  for (const std::string& bad : {key + id + size, key + when + size, id + when + size,
                                 key + id + when, key + size + when + "<VersionId>a b</VersionId>",
                                 key + size + id + "<LastModified>yesterday</LastModified>"}) {
    answer_with("<Version>" + bad + "</Version>");
    EXPECT_ERROR(at(time)->list("", 9), io, "does not parse");
  }
  answer_with("<Version>" + key + size + id + when + "</Version>");
  EXPECT_EQ(at(time)->list("", 9).size(), 1U);
  answer_with("<IsTruncated>true</IsTruncated>");
  EXPECT_ERROR(at(time)->list("", 9), io, "does not parse");
  answer_with("<Version>" + key + size + id + when +
              "</Version><IsTruncated>true</IsTruncated><NextKeyMarker>pre/fix/a</NextKeyMarker>");
  EXPECT_ERROR(at(time)->list("", 9), io, "repeats itself");
  answer_with("<Version><Key>pre/fix/../x</Key>" + size + id + when + "</Version>");
  EXPECT_TRUE(at(time)->list("", 9).empty());
}

TEST(UrlAt, SetsAndRemovesTheTime) {
  const std::string url = "s3://bucket/pre?region=r&at=2026-11-24T10:30:00Z&profile=p";
  EXPECT_EQ(parse_remote_url(url).at, "2026-11-24T10:30:00Z");
  EXPECT_EQ(url_at(url, ""), "s3://bucket/pre?region=r&profile=p");
  EXPECT_EQ(url_at(url, "2026-11-25T00:00:00.5Z"),
            "s3://bucket/pre?region=r&profile=p&at=2026-11-25T00:00:00.5Z");
  EXPECT_EQ(url_at("s3://bucket", "2026-11-25T00:00:00Z"), "s3://bucket?at=2026-11-25T00:00:00Z");
  EXPECT_EQ(url_at("s3://bucket?at=2026-11-25T00:00:00Z", ""), "s3://bucket");
  EXPECT_EQ(url_at("file:///r", ""), "file:///r");
  EXPECT_ERROR(url_at("file:///r", "2026-11-25T00:00:00Z"), unsupported, "earlier");
  EXPECT_ERROR(parse_remote_url("s3://bucket?at=yesterday"), invalid_argument, "at is a time");
}

}  // namespace
}  // namespace vellum::remote::test
