// Signatures against AWS's published vectors: those of its test suite for Signature Version 4, and
// the examples of S3's own manual.
#include <gtest/gtest.h>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "remote/s3/sigv4.hpp"

namespace vellum::remote {
namespace {

const Credentials kSuite{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
const SigningScope kSuiteScope{"us-east-1", "service", "20150830T123600Z"};
const Credentials kManual{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const SigningScope kManualScope{"us-east-1", "s3", "20130524T000000Z"};

std::string hash_of(const std::string& text) {
  return base::hex(base::sha256(std::as_bytes(std::span(text.data(), text.size()))));
}

RequestToSign suite_request(const std::string& method, const std::string& path,
                            NameValues query = {}, NameValues headers = {},
                            const std::string& body = "") {
  RequestToSign out{method, path, std::move(query), std::move(headers), hash_of(body)};
  out.headers.emplace_back("Host", "example.amazonaws.com");
  out.headers.emplace_back("X-Amz-Date", "20150830T123600Z");
  return out;
}

std::string signature(const std::string& authorization) {
  return authorization.substr(authorization.find("Signature=") + 10);
}

std::string suite_signature(const RequestToSign& request) {
  return signature(sign(request, kSuiteScope, kSuite));
}

TEST(SigV4, TheSuitesPlainRequest) {
  EXPECT_EQ(sign(suite_request("GET", "/"), kSuiteScope, kSuite),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(suite_signature(suite_request("POST", "/")),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

TEST(SigV4, TheSuitesQueriesAreSorted) {
  EXPECT_EQ(
      suite_signature(suite_request("GET", "/", {{"Param2", "value2"}, {"Param1", "value1"}})),
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  EXPECT_EQ(
      suite_signature(suite_request("GET", "/", {{"Param1", "value2"}, {"Param1", "Value1"}})),
      "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1");
}

TEST(SigV4, TheSuitesPathsAndHeaders) {
  EXPECT_EQ(suite_signature(suite_request("GET", uri_encoded("/\u1234", true))),
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  EXPECT_EQ(suite_signature(suite_request(
                "GET", "/", {}, {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}})),
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

TEST(SigV4, TheSuitesBody) {
  EXPECT_EQ(suite_signature(suite_request("POST", "/", {},
                                          {{"Content-Type", "application/x-www-form-urlencoded"}},
                                          "Param1=value1")),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
}

TEST(SigV4, TheSuitesSessionToken) {
  const std::string token =
      "AQoDYXdzEPT//////////"
      "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeo"
      "IYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/"
      "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5V"
      "SXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+"
      "scqKmlzm8FDrypNC9Yj"
      "c8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
  EXPECT_EQ(suite_signature(suite_request("POST", "/", {}, {{"X-Amz-Security-Token", token}})),
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead");
}

TEST(SigV4, TheManualsExamples) {
  const auto manual = [](RequestToSign request) {
    request.headers.emplace_back("Host", "examplebucket.s3.amazonaws.com");
    request.headers.emplace_back("x-amz-content-sha256", request.payload_hash);
    request.headers.emplace_back("x-amz-date", "20130524T000000Z");
    return signature(sign(request, kManualScope, kManual));
  };
  EXPECT_EQ(manual({"GET", "/test.txt", {}, {{"Range", "bytes=0-9"}}, hash_of("")}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(manual({"PUT",
                    uri_encoded("/test$file.text", true),
                    {},
                    {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                    hash_of("Welcome to Amazon S3.")}),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(manual({"GET", "/", {{"lifecycle", ""}}, {}, hash_of("")}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(manual({"GET", "/", {{"max-keys", "2"}, {"prefix", "J"}}, {}, hash_of("")}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

}  // namespace
}  // namespace vellum::remote
