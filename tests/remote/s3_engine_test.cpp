// The S3 engine with a server in this process that injects all kinds of faults.
#include <gtest/gtest.h>

#include <future>

#include "base/expect_error.hpp"
#include "base/threads/thread_pool.hpp"
#include "remote/bound_port.hpp"
#include "remote/engine/probe.hpp"
#include "remote/s3_server_lib.hpp"
#include "store/support.hpp"
#include "support/child.hpp"

namespace vellum::remote::test {
namespace {

std::vector<std::byte> object_bytes(const std::string& text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  return {from, from + text.size()};
}

const std::string kHello = "hello, objects";

// A fault for the n-th request only.
std::function<Fault(const S3Request&)> nth_request(std::uint64_t n, Fault fault) {
  return [=](const S3Request& request) { return request.number == n ? fault : Fault::none; };
}

TEST(S3EngineTest, KeepsObjects) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  EXPECT_TRUE(objects->list("", 10).empty());
  EXPECT_ERRC(objects->get("a/b", 10), Errc::not_found);
  EXPECT_TRUE(objects->put_if_absent("a/b", object_bytes("one")));
  EXPECT_FALSE(objects->put_if_absent("a/b", object_bytes("one")));
  EXPECT_EQ(server.objects().at("pre/fix/a/b"), "one");
  EXPECT_EQ(objects->get("a/b", 3), object_bytes("one"));
  EXPECT_ERRC(objects->get("a/b", 2), Errc::corrupted);
  EXPECT_EQ(objects->get_range("a/b", {1, 2}), object_bytes("ne"));
  EXPECT_ERRC(objects->get_range("a/b", {1, 3}), Errc::corrupted);
  EXPECT_EQ(objects->get_start("a/b", 2), object_bytes("on"));
  EXPECT_EQ(objects->get_start("a/b", 9), object_bytes("one"));
  EXPECT_ERRC(objects->get_start("a/c", 9), Errc::not_found);
  EXPECT_TRUE(objects->has("a/b", 3));
  EXPECT_FALSE(objects->has("a/b", 2));
  EXPECT_FALSE(objects->has("a/b", 4));
  EXPECT_FALSE(objects->has("a/c", 3));
  EXPECT_ERRC(objects->get_range("a/b", {7, 1}), Errc::corrupted);
  objects->put("a/b", object_bytes("three"));
  objects->put("b", object_bytes(""));
  EXPECT_EQ(objects->list("", 10), (std::vector<ObjectInfo>{{"a/b", 5}, {"b", 0}}));
  objects->remove("a/b");
  objects->remove("a/b");
  EXPECT_EQ(objects->list("", 10), (std::vector<ObjectInfo>{{"b", 0}}));
}

// The server does not answer the question about an object, and lists it.
TEST(S3EngineTest, AnObjectThatTheServerDoesNotGiveOutExists) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  const std::string large(1u << 20, 'x');
  server.set("pre/fix/a", large);
  server.set("pre/fix/ab", "other");
  S3Server::Answer archived{403, "<Error><Code>InvalidObjectState</Code></Error>", ""};
  for (const S3Server::Answer& answer : {S3Server::Answer{200, large, ""}, archived}) {
    server.answer = [&](const S3Request& request) -> std::optional<S3Server::Answer> {
      if (!request.headers.contains("range")) return std::nullopt;
      return answer;
    };
    EXPECT_TRUE(objects->has("a", large.size()));
    EXPECT_FALSE(objects->has("a", large.size() - 1));
  }
}

TEST(S3EngineTest, TheNextEngineOfAProcessUsesTheConnectionsOfTheLast) {
  S3Server server;
  server.set("pre/fix/a", "one");
  const auto read = [&](const S3Options& options) {
    return make_s3_engine(options)->get("a", 3) == object_bytes("one");
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(read(server.options()));
  EXPECT_EQ(server.connections_accepted(), 1u);
  // Two at once and other options have their own.
  const auto first = make_s3_engine(server.options());
  EXPECT_EQ(first->get("a", 3), object_bytes("one"));
  EXPECT_TRUE(read(server.options()));
  EXPECT_EQ(server.connections_accepted(), 2u);
  S3Options others = server.options();
  others.http.connect_timeout = std::chrono::seconds(9);
  EXPECT_TRUE(read(others));
  EXPECT_EQ(server.connections_accepted(), 3u);
}

TEST(S3EngineTest, AForkedChildHasConnectionsOfItsOwn_NoTsan) {
  S3Server server;
  server.set("pre/fix/a", "one");
  const auto read = [&] { return make_s3_engine(server.options())->get("a", 3).size() == 3; };
  EXPECT_TRUE(read());
  EXPECT_CHILD_EXIT(vellum::test::run_child([&] { vellum::test::require(read(), "the object"); }),
                    0);
  EXPECT_EQ(server.connections_accepted(), 2u);
  EXPECT_TRUE(read());
  EXPECT_EQ(server.connections_accepted(), 2u);
}

TEST(S3EngineTest, AConnectionThatTheServerHasClosedIsReplaced) {
  const auto options = [](S3Server& server) {
    server.set("pre/fix/a", "one");
    return server.options();
  };
  for (int i = 0; i < 3; ++i) {
    S3Server server;  // ends with its connections open
    EXPECT_EQ(make_s3_engine(options(server))->get("a", 3), object_bytes("one"));
  }
  S3Server server;
  EXPECT_EQ(make_s3_engine(options(server))->get("a", 3), object_bytes("one"));
  server.close_connections();
  EXPECT_EQ(make_s3_engine(options(server))->get("a", 3), object_bytes("one"));
  EXPECT_EQ(server.connections_accepted(), 2u);
}

TEST(S3EngineTest, ListsInPagesAndLeavesOutStrangers) {
  S3Server server;
  server.most_listed = 7;
  for (int i = 0; i < 30; ++i) server.set("pre/fix/k/" + std::to_string(100 + i), "x");
  server.set("pre/fix/k/Strange Name", "x");
  server.set("pre/fixed/k/1", "x");
  const auto objects = make_s3_engine(server.options());
  EXPECT_EQ(objects->list("k/", 1000).size(), 30u);
  EXPECT_EQ(objects->list("k/", 10).back().key, "k/109");
  EXPECT_EQ(objects->list("", 1).front().key, "k/100");
}

std::vector<std::string> put_many(ObjectStore& objects, int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) {
    keys.push_back("k/" + std::to_string(10'000 + i));
    objects.put(keys.back(), object_bytes("x"));
  }
  return keys;
}

TEST(S3EngineTest, ThousandObjectsAreDeletedByOneRequest) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  const auto keys = put_many(*objects, 1001);
  objects->put("other", object_bytes("x"));
  const auto before = server.requests();
  objects->remove_all(keys);
  EXPECT_EQ(server.requests(), before + 2);
  EXPECT_EQ(objects->list("", 10), (std::vector<ObjectInfo>{{"other", 1}}));
  objects->remove_all(keys);  // they do not exist any more
}

TEST(S3EngineTest, AnObjectThatIsNotDeletedWithOthersIsDeletedOnItsOwn) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  const auto keys = put_many(*objects, 3);
  server.undeletable = "pre/fix/" + keys[1];
  auto before = server.requests();
  objects->remove_all(keys);
  EXPECT_EQ(server.requests(), before + 2);
  EXPECT_TRUE(objects->list("", 10).empty());
}

TEST(S3EngineTest, AServerWithoutSuchRequestsIsAskedOnce) {
  S3Server server;
  server.deletes_many = false;
  const auto objects = make_s3_engine(server.options());
  const auto keys = put_many(*objects, 5);
  auto before = server.requests();
  objects->remove_all(std::span(keys).first(3));
  EXPECT_EQ(server.requests(), before + 4);
  before = server.requests();
  objects->remove_all(std::span(keys).last(2));
  EXPECT_EQ(server.requests(), before + 2);
  EXPECT_TRUE(objects->list("", 10).empty());
}

TEST(S3EngineTest, ADeletionThatTheServerForbidsNamesObjectAndPermission) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  const auto keys = put_many(*objects, 2);
  server.answer = [](const S3Request&) {
    return S3Server::Answer{403, "<Error><Code>AccessDenied</Code></Error>", ""};
  };
  const std::string text = store::test::error_text(Errc::io, [&] { objects->remove_all(keys); });
  EXPECT_NE(text.find(keys[0]), std::string::npos) << text;
  EXPECT_NE(text.find("s3:DeleteObject"), std::string::npos) << text;
}

TEST(S3EngineTest, EveryPassingFaultIsRepeated) {
  for (const Fault fault :
       {Fault::reset_before, Fault::lost_reply, Fault::error_500, Fault::error_503, Fault::cut_body,
        Fault::twice, Fault::late, Fault::wrong_clock}) {
    SCOPED_TRACE(static_cast<int>(fault));
    S3Server server;
    const auto objects = make_s3_engine(server.options());
    objects->put("a", object_bytes(kHello));
    for (std::uint64_t n : {1u, 3u}) {
      const auto reset = [&] { server.fault = nth_request(server.requests() + n, fault); };
      reset();
      EXPECT_EQ(objects->get("a", 100), object_bytes(kHello));
      EXPECT_EQ(objects->get_range("a", {2, 5}), object_bytes(kHello.substr(2, 5)));
      EXPECT_EQ(objects->list("a", 5).size(), 1u);
      reset();
      objects->put("b", object_bytes(kHello));
      objects->remove("b");
      objects->put("b", object_bytes("again"));
      EXPECT_EQ(objects->get("b", 100), object_bytes("again"));
      objects->remove("b");
    }
  }
}

TEST(S3EngineTest, ALostReplyToAConditionalPutIsNoConflict) {
  for (const Fault fault : {Fault::lost_reply, Fault::cut_body}) {
    S3Server server;
    const auto objects = make_s3_engine(server.options());
    server.fault = nth_request(1, fault);
    EXPECT_TRUE(objects->put_if_absent("a", object_bytes("mine")));
    // An object of another creator is recognized, even after a lost reply.
    server.fault = nth_request(server.requests() + 1, fault);
    server.set("pre/fix/b", "theirs");
    EXPECT_FALSE(objects->put_if_absent("b", object_bytes("mine, and longer")));
    EXPECT_EQ(server.objects().at("pre/fix/b"), "theirs");
  }
}

TEST(S3EngineTest, AFaultThatStaysIsNotWaitedForLongerThanIsAllowed) {
  S3Server server;
  S3Options options = server.options();
  options.attempts = 1000;
  options.first_pause = std::chrono::milliseconds(20);
  options.timeout = std::chrono::milliseconds(300);
  const auto objects = make_s3_engine(options);
  server.fault = [](const S3Request&) { return Fault::error_503; };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_ERRC(objects->get("a/b", 10), Errc::io);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(S3EngineTest, AFaultThatStaysEndsWithAnErrorThatNamesTheObject) {
  S3Server server;
  S3Options options = server.options();
  options.attempts = 3;
  const auto objects = make_s3_engine(options);
  server.fault = [](const S3Request&) { return Fault::error_503; };
  try {
    objects->get("a/b", 10);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::io);
    for (const char* part : {"s3://bucket/pre/fix: a/b", "503", "SlowDown", "It & is a test"}) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(server.requests(), 3u);
}

TEST(S3EngineTest, ARefusalIsNotRepeatedAndTellsNoSecret) {
  S3Server server;
  S3Options options = server.options();
  options.credentials.secret_access_key = "not-the-secret";
  const auto objects = make_s3_engine(options);
  try {
    objects->put("a", object_bytes("x"));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("SignatureDoesNotMatch"), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find("not-the-secret"), std::string::npos) << e.what();
  }
  EXPECT_EQ(server.requests(), 1u);
}

TEST(S3EngineTest, ManyCallsRunAtOnceOverFewConnections) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  server.fault = [](const S3Request&) { return Fault::late; };
  base::ThreadPool pool(31);
  pool.parallel_for(200, [&](std::size_t i, std::size_t) {
    const std::string key = "k/" + std::to_string(i);
    const auto bytes = object_bytes(std::string(20'000, static_cast<char>('a' + i % 26)));
    EXPECT_TRUE(objects->put_if_absent(key, bytes));
    EXPECT_EQ(objects->get(key, 20'000), bytes);
  });
  EXPECT_EQ(server.objects().size(), 200u);
}

S3Server::Answer error_answer(int status, const std::string& code, const std::string& message,
                              const std::string& headers = "") {
  return {status, "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>",
          headers};
}

TEST(S3EngineTest, ARefusalSaysWhichRightIsMissing) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  server.answer = [](const S3Request&) {
    return error_answer(403, "AccessDenied", "not &#34;you&#x22; &amp; yours");
  };
  const auto expect = [&](const char* right, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << right;
    } catch (const RefusedRequest& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("not \"you\" & yours"), std::string::npos) << text;
      EXPECT_NE(text.find(right), std::string::npos) << text;
    }
  };
  expect("s3:GetObject", [&] { objects->get("a", 1); });
  expect("s3:PutObject", [&] { objects->put("a", {}); });
  expect("s3:PutObject", [&] { objects->put_if_absent("a", {}); });
  expect("s3:DeleteObject", [&] { objects->remove("a"); });
  expect("s3:ListBucket", [&] { objects->list("", 1); });
  EXPECT_EQ(server.requests(), 5u);
}

TEST(S3EngineTest, AListingThatRepeatsItselfIsAnError) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  const auto listing = [](const std::string& key, const std::string& token) {
    return S3Server::Answer{200,
                            "<ListBucketResult><Contents><Key>pre/fix/" + key +
                                "</Key><Size>1</Size></Contents><IsTruncated>true</IsTruncated>"
                                "<NextContinuationToken>" +
                                token + "</NextContinuationToken></ListBucketResult>",
                            ""};
  };
  server.answer = [&](const S3Request& r) { return listing(std::to_string(r.number), "same"); };
  EXPECT_ERRC(objects->list("", SIZE_MAX), Errc::io);
  server.answer = [&](const S3Request& r) { return listing("k", std::to_string(r.number)); };
  EXPECT_ERRC(objects->list("", SIZE_MAX), Errc::io);
  EXPECT_LT(server.requests(), 10u);
}

TEST(S3EngineTest, APauseThatTheServerAsksForIsKeptOrNotBegun) {
  for (const char* code : {"SlowDown", "TooManyRequests"}) {
    S3Server server;
    const auto objects = make_s3_engine(server.options());
    server.answer = [&](const S3Request&) {
      return error_answer(code[0] == 'S' ? 503 : 429, code, "", "Retry-After: 100000\r\n");
    };
    EXPECT_ERRC(objects->get("a", 1), Errc::io);
    EXPECT_EQ(server.requests(), 1u);  // longer than the timeout
    server.answer = [&](const S3Request& r) -> std::optional<S3Server::Answer> {
      if (r.number > 2) return std::nullopt;
      return error_answer(503, code, "", "Retry-After: 0\r\n");
    };
    objects->put("a", object_bytes("x"));
    EXPECT_EQ(server.requests(), 3u);
  }
}

TEST(S3EngineTest, RenewedCredentialsAreReadAgain) {
  S3Server server;
  S3Options options = server.options();
  const Credentials renewed = options.credentials;
  int reads = 0;
  options.credentials.secret_access_key = "expired";
  options.read_credentials = [&] { return ++reads, renewed; };
  const auto objects = make_s3_engine(options);
  objects->put("a", object_bytes("x"));
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(server.requests(), 2u);
  // The refused credentials are still the current ones: no retry.
  server.answer = [](const S3Request&) { return error_answer(400, "ExpiredToken", "old"); };
  EXPECT_THROW(objects->get("a", 1), RefusedRequest);
  EXPECT_EQ(reads, 2);
  EXPECT_EQ(server.requests(), 3u);
  server.answer = nullptr;
  // Old credentials are read again before a server refuses them.
  options.credentials_age = std::chrono::seconds(0);
  make_s3_engine(options)->put("b", object_bytes("x"));
  EXPECT_EQ(server.requests(), 4u);
}

TEST(S3EngineTest, APutTellsTheChecksumOfWhatItSends) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  std::string checksum;
  server.fault = [&](const S3Request& request) {
    checksum = request.headers.at("x-amz-checksum-sha256");
    return Fault::none;
  };
  objects->put_if_absent("a", object_bytes("abc"));
  EXPECT_EQ(checksum, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  objects->put("a", {});
  EXPECT_EQ(checksum, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

TEST(S3EngineTest, LargeObjectsHaveTheStorageClassAndAllTheKey) {
  S3Server server;
  std::map<std::string, std::string> headers;
  server.fault = [&](const S3Request& request) {
    headers = request.headers;
    return Fault::none;
  };
  auto options = server.options();
  make_s3_engine(options)->put("a", std::vector<std::byte>(128u << 10));
  EXPECT_FALSE(headers.contains("x-amz-storage-class"));
  EXPECT_FALSE(headers.contains("x-amz-server-side-encryption"));
  options.storage_class = "STANDARD_IA";
  options.kms_key = "alias/ours";
  const auto objects = make_s3_engine(options);
  objects->put("a", std::vector<std::byte>(128u << 10));
  EXPECT_EQ(headers["x-amz-storage-class"], "STANDARD_IA");
  EXPECT_EQ(headers["x-amz-server-side-encryption"], "aws:kms");
  EXPECT_EQ(headers["x-amz-server-side-encryption-aws-kms-key-id"], "alias/ours");
  objects->put_if_absent("b", object_bytes("small"));
  EXPECT_FALSE(headers.contains("x-amz-storage-class"));
  EXPECT_EQ(headers["x-amz-server-side-encryption"], "aws:kms");
  objects->get("a", 128u << 10);
  EXPECT_FALSE(headers.contains("x-amz-server-side-encryption"));
}

TEST(S3EngineTest, BucketsWithDotsGoByPath) {
  EXPECT_FALSE(uses_path_addressing(parse_remote_url("s3://plain/p"), false));
  EXPECT_TRUE(uses_path_addressing(parse_remote_url("s3://my.bucket/p"), false));
  EXPECT_TRUE(uses_path_addressing(parse_remote_url("s3://plain/p"), true));
  EXPECT_FALSE(uses_path_addressing(parse_remote_url("s3://my.bucket/p?addressing=virtual"), true));
}

TEST(S3EngineTest, AStoppedEngineWaitsForNobody) {
  std::promise<void> asked, over;  // outlive the server, whose thread waits for one of them
  std::future<void> end = over.get_future();
  S3Server server;
  S3Options options = server.options();
  options.http.stall_timeout = std::chrono::hours(1);
  const auto objects = make_s3_engine(options);
  server.answer = [&](const S3Request&) {
    asked.set_value();
    end.wait();
    return error_answer(500, "TooLate", "");
  };
  auto got = std::async(std::launch::async, [&] { objects->get("a", 1); });
  asked.get_future().wait();
  objects->stop();
  EXPECT_ERRC(got.get(), Errc::io);
  over.set_value();
  EXPECT_ERRC(objects->get("a", 1), Errc::io);
  EXPECT_EQ(server.requests(), 1u);
}

// A reserved port without a listener.
TEST(S3EngineTest, AServerThatIsNotThereIsNamed) {
  const BoundPort port;
  S3Options options = S3Server().options();
  options.endpoint = "http://127.0.0.1:" + std::to_string(port.number());
  options.attempts = 2;
  EXPECT_ERRC(make_s3_engine(options)->get("a", 1), Errc::io);
}

TEST(ProbeTest, AProbeDetectsServersThatCheckAndThenWrite) {
  S3Server server;
  const auto objects = make_s3_engine(server.options());
  EXPECT_TRUE(probe_conditional_writes(*objects, {20, 6}).one_creator_wins());
  server.conditional_writes_race = true;
  const ProbeResult result = probe_conditional_writes(*objects, {20, 6});
  EXPECT_FALSE(result.one_creator_wins());
  EXPECT_GT(result.several_won, 0u);
  EXPECT_TRUE(objects->list("probe", 10).empty());
}

}  // namespace
}  // namespace vellum::remote::test
