#include "remote/engine/url.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/utc_time.hpp"

namespace vellum::remote {
namespace {

constexpr std::string_view kFile = "file://", kS3 = "s3://";

[[noreturn]] void refuse(const std::string& url, const std::string& reason) {
  fail(Errc::invalid_argument, "'{}': {}", url, reason);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(const std::string& url, std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size() || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0) {
      refuse(url, "a percent sign needs two hexadecimal digits behind it");
    }
    out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
    i += 2;
  }
  if (std::any_of(out.begin(), out.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    refuse(url, "it has a control character");
  }
  return out;
}

bool is_bucket(const std::string& name) {
  if (name.size() < 3 || name.size() > 63) return false;
  const auto is_end = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (!is_end(name.front()) || !is_end(name.back())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_end(c) || c == '-' || c == '.'; });
}

// A class whose objects are read at once: those of an archive would first have to be restored.
bool is_storage_class(const std::string& name) {
  if (name.empty() || name.size() > 64 || name == "GLACIER" || name == "DEEP_ARCHIVE") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// The id, the alias or the ARN of a key: no byte of it may end a header.
bool is_kms_key(const std::string& name) {
  return !name.empty() && name.size() <= 2048 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool is_prefix(const std::string& prefix) {
  if (prefix.empty()) return true;
  if (prefix.size() > 500 || prefix.find("//") != std::string::npos) return false;
  for (std::size_t at = 0; at <= prefix.size();) {
    const std::size_t end = std::min(prefix.find('/', at), prefix.size());
    const std::string part = prefix.substr(at, end - at);
    if (part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

std::string endpoint_of(const std::string& source, std::string value) {
  while (!value.empty() && value.back() == '/') value.pop_back();
  const bool has_scheme = value.starts_with("http://") || value.starts_with("https://");
  if (!has_scheme) refuse(source, "the endpoint has to begin with https:// or http://");
  const std::string host = value.substr(value.find("//") + 2);
  if (host.empty()) refuse(source, "the endpoint names no host");
  if (host.find('@') != std::string::npos) {
    refuse(source, "a URL must not have credentials: set them as for AWS's tools");
  }
  if (host.find_first_of("/?# ") != std::string::npos)
    refuse(source, "the endpoint is a host, without a path");
  return value;
}

namespace {

void read_option(RemoteUrl& out, const std::string& name, const std::string& value) {
  if (name == "endpoint") {
    out.endpoint = endpoint_of(out.text, value);
  } else if (name == "region") {
    out.region = value;
  } else if (name == "profile") {
    out.profile = value;
  } else if (name == "addressing" && value == "path") {
    out.addressing = RemoteUrl::Addressing::path;
  } else if (name == "addressing" && value == "virtual") {
    out.addressing = RemoteUrl::Addressing::virtual_host;
  } else if (name == "addressing") {
    refuse(out.text, "addressing is 'path' or 'virtual'");
  } else if (name == "storage-class") {
    if (!is_storage_class(value)) {
      refuse(out.text, "storage-class is a name such as STANDARD_IA, and no archive's");
    }
    out.storage_class = value;
  } else if (name == "kms-key") {
    if (!is_kms_key(value)) refuse(out.text, "kms-key is the id, the alias or the ARN of a key");
    out.kms_key = value;
  } else if (name == "at") {
    if (!base::parse_utc_time(value).has_value()) {
      refuse(out.text, "at is a time of UTC, such as 2026-11-24T10:30:00Z");
    }
    out.at = value;
  } else {
    refuse(out.text, "unknown option '" + name +
                         "': the options are endpoint, region, profile, addressing, "
                         "storage-class, kms-key and at");
  }
}

void read_options(RemoteUrl& out, std::string_view query) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals + 1 == part.size()) {
      refuse(out.text, "an option needs a value: name=value");
    }
    read_option(out, decoded(out.text, part.substr(0, equals)),
                decoded(out.text, part.substr(equals + 1)));
  }
}

RemoteUrl parse_file(const std::string& text) {
  RemoteUrl out;
  out.text = text;
  out.path = base::without_end_slashes(decoded(text, std::string_view(text).substr(kFile.size())));
  if (!out.path.starts_with("/")) refuse(text, "give an absolute path: file:///path");
  return out;
}

RemoteUrl parse_s3(const std::string& text) {
  RemoteUrl out;
  out.kind = RemoteUrl::EngineKind::s3;
  out.text = text;
  std::string_view rest = std::string_view(text).substr(kS3.size());
  const std::string_view place = rest.substr(0, rest.find('?'));
  rest.remove_prefix(std::min(place.size() + 1, rest.size()));
  if (place.find('@') != std::string_view::npos) {
    refuse(text, "a URL must not have credentials: set them as for AWS's tools");
  }
  const std::size_t slash = std::min(place.find('/'), place.size());
  out.bucket = std::string(place.substr(0, slash));
  out.prefix = decoded(text, place.substr(std::min(slash + 1, place.size())));
  while (!out.prefix.empty() && out.prefix.back() == '/') out.prefix.pop_back();
  if (!is_bucket(out.bucket)) {
    refuse(text, "a bucket's name has 3 to 63 lower-case letters, digits, '-' and '.'");
  }
  if (!is_prefix(out.prefix)) refuse(text, "the prefix has an empty part, '.' or '..'");
  read_options(out, rest);
  return out;
}

}  // namespace

bool is_remote_url(const std::string& text) {
  return text.starts_with(kFile) || text.starts_with(kS3);
}

bool is_same_place(const RemoteUrl& a, const RemoteUrl& b) {
  const auto normal = [](const RemoteUrl& url) {
    return std::filesystem::path(url.path).lexically_normal();
  };
  return a.kind == b.kind && normal(a) == normal(b) && a.bucket == b.bucket &&
         a.prefix == b.prefix && a.endpoint == b.endpoint;
}

std::string url_at(const std::string& url, const std::string& time) {
  const RemoteUrl parsed = parse_remote_url(url);
  if (parsed.kind == RemoteUrl::EngineKind::directory) {
    if (time.empty()) return url;
    fail(Errc::unsupported,
         "{}: a directory keeps no earlier states: only a bucket with versions has them", url);
  }
  const std::size_t mark = url.find('?');
  std::string out = url.substr(0, mark), options;
  std::string_view rest =
      mark == std::string::npos ? std::string_view() : std::string_view(url).substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view option = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(option.size() + 1, rest.size()));
    if (option.starts_with("at=")) continue;
    options += (options.empty() ? "" : "&") + std::string(option);
  }
  if (!time.empty()) options += (options.empty() ? "at=" : "&at=") + time;
  if (!options.empty()) out += "?" + options;
  parse_remote_url(out);
  return out;
}

RemoteUrl parse_remote_url(const std::string& text) {
  if (text.starts_with(kFile)) return parse_file(text);
  if (text.starts_with(kS3)) return parse_s3(text);
  refuse(text, "a remote is s3://bucket/prefix or file:///path");
}

}  // namespace vellum::remote
