#include "remote/s3/aws_config.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

using Section = std::map<std::string, std::string>;

std::string without_blanks(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string value_or(const Section& section, const std::string& name,
                     const std::string& otherwise) {
  const auto at = section.find(name);
  return at == section.end() ? otherwise : at->second;
}

// The settings of one profile, from both files.
class Profile {
 public:
  Profile(const RemoteUrl& url, const AwsEnvironment& environment) : environment_(environment) {
    name_ = !url.profile.empty() ? url.profile : variable("AWS_PROFILE", "default");
    const std::string home = variable("HOME", "");
    credentials_ =
        section(variable("AWS_SHARED_CREDENTIALS_FILE", home + "/.aws/credentials"), name_);
    const std::string config = variable("AWS_CONFIG_FILE", home + "/.aws/config");
    config_ = section(config, name_ == "default" ? name_ : "profile " + name_);
  }

  const std::string& name() const noexcept { return name_; }
  std::string variable(const std::string& variable, const std::string& otherwise) const {
    const auto value = environment_.variable(variable);
    return value.has_value() && !value->empty() ? *value : otherwise;
  }
  std::string setting(const std::string& setting) const {
    return value_or(credentials_, setting, value_or(config_, setting, ""));
  }
  Credentials credentials() const {
    return {setting("aws_access_key_id"), setting("aws_secret_access_key"),
            setting("aws_session_token")};
  }

 private:
  Section section(const std::string& path, const std::string& name) const {
    const auto text = environment_.file(path);
    if (!text.has_value()) return {};
    const IniFile ini = parse_ini(*text);
    const auto at = ini.find(name);
    return at == ini.end() ? Section{} : at->second;
  }

  const AwsEnvironment& environment_;
  std::string name_;
  Section credentials_, config_;
};

Credentials find_credentials(const RemoteUrl& url, const Profile& profile) {
  if (url.profile.empty()) {
    Credentials out{profile.variable("AWS_ACCESS_KEY_ID", ""),
                    profile.variable("AWS_SECRET_ACCESS_KEY", ""),
                    profile.variable("AWS_SESSION_TOKEN", "")};
    if (!out.access_key_id.empty() && !out.secret_access_key.empty()) return out;
  }
  Credentials out = profile.credentials();
  if (out.access_key_id.empty() || out.secret_access_key.empty()) {
    fail(Errc::invalid_argument,
         "{}: no credentials: neither AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY nor profile "
         "'{}' of ~/.aws/credentials gives any",
         url.text, profile.name());
  }
  return out;
}

}  // namespace

AwsEnvironment process_environment() {
  AwsEnvironment out;
  out.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  out.file = [](const std::string& path) -> std::optional<std::string> {
    const std::ifstream file(path);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  return out;
}

AwsSettings find_aws_settings(const RemoteUrl& url, const AwsEnvironment& environment) {
  const Profile profile(url, environment);
  const auto first_of = [](std::initializer_list<std::string> values) {
    for (const std::string& value : values) {
      if (!value.empty()) return value;
    }
    return std::string();
  };
  AwsSettings out;
  out.credentials = find_credentials(url, profile);
  out.region = first_of({url.region, profile.variable("AWS_REGION", ""),
                         profile.variable("AWS_DEFAULT_REGION", ""), profile.setting("region"),
                         "us-east-1"});
  out.endpoint =
      first_of({url.endpoint, profile.variable("AWS_ENDPOINT_URL_S3", ""),
                profile.variable("AWS_ENDPOINT_URL", ""), profile.setting("endpoint_url")});
  if (!out.endpoint.empty()) {
    out.endpoint = endpoint_of("AWS_ENDPOINT_URL or endpoint_url: " + out.endpoint, out.endpoint);
  }
  out.ca_bundle =
      first_of({profile.variable("AWS_CA_BUNDLE", ""), profile.setting("ca_bundle"),
                profile.variable("CURL_CA_BUNDLE", ""), profile.variable("SSL_CERT_FILE", "")});
  return out;
}

IniFile parse_ini(const std::string& text) {
  IniFile out;
  Section* section = nullptr;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    // An indented line belongs to a nested setting (`s3 =`); these are not used.
    const bool nested = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    line = without_blanks(line);
    if (line.empty() || nested || line[0] == '#' || line[0] == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = &out[without_blanks(line.substr(1, line.size() - 2))];
      continue;
    }
    const auto equals = line.find('=');
    if (section == nullptr || equals == std::string::npos) continue;
    (*section)[without_blanks(line.substr(0, equals))] = without_blanks(line.substr(equals + 1));
  }
  return out;
}

}  // namespace vellum::remote
