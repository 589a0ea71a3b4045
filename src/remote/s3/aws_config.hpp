// remote/s3/aws_config.hpp: credentials, region and endpoint, looked up like AWS's own tools do.
//
// Credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN), unless the URL
// names a profile; then the profile of the URL, of AWS_PROFILE, or `default`, in
// ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE) and in ~/.aws/config (AWS_CONFIG_FILE).
// Region: the URL, AWS_REGION, AWS_DEFAULT_REGION, the profile, us-east-1.
// Endpoint: the URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint_url.
// Authorities: AWS_CA_BUNDLE, the profile's ca_bundle, CURL_CA_BUNDLE, SSL_CERT_FILE.
// Credentials of machines and containers, single sign-on and roles are not supported.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "remote/engine/url.hpp"
#include "remote/s3/sigv4.hpp"

namespace vellum::remote {

// The source of settings: the process, or a test.
struct AwsEnvironment {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  std::function<std::optional<std::string>(const std::string& path)> file;
};
AwsEnvironment process_environment();

struct AwsSettings {
  Credentials credentials;
  std::string region;
  std::string endpoint;   // empty: AWS's own
  std::string ca_bundle;  // a file; empty: none is configured
};
// Errc::invalid_argument: no credentials. No message contains a secret.
AwsSettings find_aws_settings(const RemoteUrl& url, const AwsEnvironment& environment);

// By section, then by name: `[section]`, `name = value`, comments after '#' or ';'. In
// ~/.aws/config, a section is called `profile NAME`.
using IniFile = std::map<std::string, std::map<std::string, std::string>>;
IniFile parse_ini(const std::string& text);

}  // namespace vellum::remote
