// URLs of remotes, keys of objects, the timeout, and the lookup of credentials.
#include <gtest/gtest.h>

#include "base/expect_error.hpp"
#include "remote/engine/object_store.hpp"
#include "remote/engine/remote_timeout.hpp"
#include "remote/engine/url.hpp"
#include "remote/s3/aws_config.hpp"
#include "remote/s3/s3_replies.hpp"

namespace vellum::remote {
namespace {

TEST(RemoteUrls, ADirectoryIsAbsolute) {
  EXPECT_EQ(parse_remote_url("file:///mnt/x y/").path, "/mnt/x y");
  EXPECT_EQ(parse_remote_url("file:///mnt/a%20b%25").path, "/mnt/a b%");
  for (const char* bad :
       {"file://host/x", "file://", "file:///a%2", "file:///a%zz", "file:///a%00b"}) {
    EXPECT_ERRC(parse_remote_url(bad), Errc::invalid_argument);
  }
}

TEST(RemoteUrls, ABucketHasAPrefixAndOptions) {
  const RemoteUrl url = parse_remote_url(
      "s3://my.bucket-1/a/b%20c/?endpoint=https://host:9000/"
      "&region=eu-1&profile=p%31&addressing=virtual");
  EXPECT_EQ(url.kind, RemoteUrl::EngineKind::s3);
  EXPECT_EQ(url.bucket, "my.bucket-1");
  EXPECT_EQ(url.prefix, "a/b c");
  EXPECT_EQ(url.endpoint, "https://host:9000");
  EXPECT_EQ(url.region, "eu-1");
  EXPECT_EQ(url.profile, "p1");
  EXPECT_EQ(url.addressing, RemoteUrl::Addressing::virtual_host);
  EXPECT_EQ(parse_remote_url("s3://bucket").prefix, "");
  EXPECT_EQ(parse_remote_url("s3://bucket/?region=r").prefix, "");
  for (const char* bad : {"s3://",
                          "s3://ab",
                          "s3://Bucket",
                          "s3://bucket-",
                          "s3://bucket/a//b",
                          "s3://bucket/a/../b",
                          "s3://key:pw@bucket/x",
                          "s3://bucket?endpoint=host",
                          "s3://bucket?endpoint=http://",
                          "s3://bucket?endpoint=http://u:p@h",
                          "s3://bucket?endpoint=http://h/path",
                          "s3://bucket?region",
                          "s3://bucket?region=",
                          "s3://bucket?colour=red",
                          "s3://bucket?addressing=none",
                          "s3://bucket?storage-class=GLACIER",
                          "s3://bucket?storage-class=DEEP_ARCHIVE",
                          "s3://bucket?storage-class=standard",
                          "s3://bucket?storage-class=A%20B",
                          "s3://bucket?kms-key=a%20b",
                          "s3://bucket?kms-key=",
                          "http://bucket",
                          "bucket",
                          ""}) {
    EXPECT_ERRC(parse_remote_url(bad), Errc::invalid_argument);
  }
}

TEST(RemoteUrls, NameAStorageClassAndAKeyButStayTheSamePlace) {
  const RemoteUrl url = parse_remote_url(
      "s3://bucket/x?storage-class=STANDARD_IA&kms-key=arn:aws:kms:eu-1:12:key/ab-c");
  EXPECT_EQ(url.storage_class, "STANDARD_IA");
  EXPECT_EQ(url.kms_key, "arn:aws:kms:eu-1:12:key/ab-c");
  EXPECT_TRUE(is_same_place(url, parse_remote_url("s3://bucket/x")));
}

TEST(RemoteUrls, KeysNeedNoEscapesAndNeverLeaveADirectory) {
  for (const char* good : {"a", "heads/0f", "a.b-c/9"}) EXPECT_TRUE(is_good_key(good)) << good;
  for (const char* bad :
       {"", "/a", "a/", "a//b", ".a", "a/.b", "../a", "A", "a b", "a%", "\xc3\xa4"}) {
    EXPECT_FALSE(is_good_key(bad)) << bad;
  }
  EXPECT_FALSE(is_good_key(std::string(201, 'a')));
}

// The settings of a machine with these variables and files.
AwsSettings settings(const std::string& url, std::map<std::string, std::string> variables,
                     std::map<std::string, std::string> files = {}) {
  AwsEnvironment environment;
  variables.emplace("HOME", "/home/u");
  const auto look_up = [](const auto& map, const std::string& name) -> std::optional<std::string> {
    const auto at = map.find(name);
    return at == map.end() ? std::nullopt : std::optional(at->second);
  };
  environment.variable = [&](const std::string& name) { return look_up(variables, name); };
  environment.file = [&](const std::string& path) { return look_up(files, path); };
  return find_aws_settings(parse_remote_url(url), environment);
}

const std::map<std::string, std::string> kAwsFiles = {
    {"/home/u/.aws/credentials",
     "# mine\n[default]\naws_access_key_id = D\n  "
     "aws_secret_access_key=nested\naws_secret_access_key = ds\n"
     "[work]\naws_access_key_id=W\naws_secret_access_key=ws\naws_session_token=wt\n"},
    {"/home/u/.aws/config",
     "[default]\nregion = eu-2\ns3 =\n    addressing_style = path\n[profile work]\nregion=eu-3\n"
     "endpoint_url = http://work:1/\n[work]\nregion=never\n"}};

TEST(AwsSettingsTest, TheEnvironmentComesFirst) {
  const auto found = settings(
      "s3://bucket",
      {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "es"}, {"AWS_SESSION_TOKEN", "et"}},
      kAwsFiles);
  EXPECT_EQ(found.credentials.access_key_id, "E");
  EXPECT_EQ(found.credentials.secret_access_key, "es");
  EXPECT_EQ(found.credentials.session_token, "et");
  EXPECT_EQ(found.region, "eu-2");
  // A profile in the URL takes precedence.
  EXPECT_EQ(settings("s3://bucket?profile=work",
                     {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "es"}}, kAwsFiles)
                .credentials.access_key_id,
            "W");
}

TEST(AwsSettingsTest, ProfilesAreInTwoFiles) {
  EXPECT_EQ(settings("s3://bucket", {}, kAwsFiles).credentials.secret_access_key, "ds");
  const auto work = settings("s3://bucket", {{"AWS_PROFILE", "work"}}, kAwsFiles);
  EXPECT_EQ(work.credentials.session_token, "wt");
  EXPECT_EQ(work.region, "eu-3");
  EXPECT_EQ(work.endpoint, "http://work:1");
  EXPECT_EQ(settings("s3://bucket?region=here&endpoint=https://h",
                     {{"AWS_PROFILE", "work"}, {"AWS_REGION", "there"}}, kAwsFiles)
                .region,
            "here");
  const auto moved =
      settings("s3://bucket", {{"AWS_SHARED_CREDENTIALS_FILE", "/c"}},
               {{"/c", "[default]\naws_access_key_id=M\naws_secret_access_key=ms\n"}});
  EXPECT_EQ(moved.credentials.access_key_id, "M");
  EXPECT_EQ(moved.region, "us-east-1");
}

TEST(AwsSettingsTest, AnEndpointOfTheEnvironmentIsCheckedAsThatOfAUrl) {
  for (const char* endpoint : {"localhost:9000", "http://", "http://h/path", "ftp://h"}) {
    try {
      settings("s3://bucket", {{"AWS_ENDPOINT_URL", endpoint}}, kAwsFiles);
      ADD_FAILURE() << endpoint;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(endpoint), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(settings("s3://bucket", {{"AWS_ENDPOINT_URL", "http://h:1//"}}, kAwsFiles).endpoint,
            "http://h:1");
}

TEST(AwsSettingsTest, AuthoritiesAreThoseNamedForAmazonBeforeThoseOfCurlAndOpenSsl) {
  const auto bundle = [](const std::map<std::string, std::string>& variables,
                         const std::string& line = "") {
    return settings("s3://bucket", variables,
                    {{"/home/u/.aws/credentials",
                      "[default]\naws_access_key_id=D\naws_secret_access_key=ds\n" + line}})
        .ca_bundle;
  };
  EXPECT_EQ(bundle({}), "");
  EXPECT_EQ(bundle({{"SSL_CERT_FILE", "/o"}}), "/o");
  EXPECT_EQ(bundle({{"SSL_CERT_FILE", "/o"}, {"CURL_CA_BUNDLE", "/c"}}), "/c");
  EXPECT_EQ(bundle({{"CURL_CA_BUNDLE", "/c"}}, "ca_bundle=/p\n"), "/p");
  EXPECT_EQ(bundle({{"CURL_CA_BUNDLE", "/c"}, {"AWS_CA_BUNDLE", "/a"}}, "ca_bundle=/p\n"), "/a");
}

TEST(AwsSettingsTest, WithoutCredentialsTheErrorNamesTheProfileAndNoSecret) {
  try {
    settings("s3://bucket?profile=none", {{"AWS_SECRET_ACCESS_KEY", "hidden"}}, kAwsFiles);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("'none'"), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find("hidden"), std::string::npos) << e.what();
  }
}

std::span<const std::byte> xml(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(S3Replies, OfAnotherKindOrCutOffAreRefused) {
  S3Listing out;
  const std::string good =
      "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%2Fb&amp;c</Key><Size>12</"
      "Size></Contents>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t&lt;</NextContinuationToken></"
      "ListBucketResult>";
  ASSERT_TRUE(parse_s3_listing(xml(good), out));
  EXPECT_EQ(out.objects, (std::vector<ObjectInfo>{{"a/b&c", 12}}));
  EXPECT_EQ(out.next, "t<");
  for (const char* bad :
       {"", "<html/>", "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>99999999999999999999</Size></Contents></"
        "ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    EXPECT_FALSE(parse_s3_listing(xml(bad), out)) << bad;
  }
  EXPECT_EQ(parse_s3_error(xml("<Error><Code>A</Code><Message>b&gt;</Message></Error>")).message,
            "b>");
}

// A key is the name of an object, even if it looks like a path.
TEST(S3Replies, NothingIsFoundInsideOfAnObject) {
  S3Listing out;
  ASSERT_TRUE(parse_s3_listing(
      xml("<ListBucketResult><Contents><Key>a<IsTruncated>true</IsTruncated>"
          "<NextContinuationToken>forged</NextContinuationToken></Key><Size>3</Size></Contents>"
          "<IsTruncated>false</IsTruncated></ListBucketResult>"),
      out));
  EXPECT_EQ(out.objects.size(), 1u);
  EXPECT_EQ(out.next, "");
}

TEST(RemoteTimeout, TheTimeoutIsTheOptionOrTheEnvironment) {
  using std::chrono::milliseconds;
  constexpr const char* kVariable = "VELLUM_REMOTE_WAIT_S";
  ::unsetenv(kVariable);
  EXPECT_EQ(remote_timeout(), milliseconds(60'000));
  for (const auto& [text, wait] : {std::pair("0.5", 500), {"2", 2000}, {"1.25", 1250}}) {
    ::setenv(kVariable, text, 1);
    EXPECT_EQ(remote_timeout(), milliseconds(wait)) << text;
  }
  EXPECT_EQ(remote_timeout(milliseconds(7)), milliseconds(7));
  for (const char* bad : {"", "x", "-1", "1e3", "1.2.3", "0", "0.0001", ".", "nan"}) {
    ::setenv(kVariable, bad, 1);
    EXPECT_ERRC(remote_timeout(), Errc::invalid_argument);
  }
  ::unsetenv(kVariable);
}

}  // namespace
}  // namespace vellum::remote
