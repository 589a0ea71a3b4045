#include "remote/s3/s3_replies.hpp"

#include "base/parse_number.hpp"
#include "base/utc_time.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace vellum::remote {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The text between <name> and </name>, from `at` on; sets `at` to the position after it.
std::optional<std::string_view> element(std::string_view xml, std::string_view name,
                                        std::size_t& at) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const std::size_t from = xml.find(open, at);
  if (from == std::string_view::npos) return std::nullopt;
  const std::size_t to = xml.find(close, from);
  if (to == std::string_view::npos) return std::nullopt;
  at = to + close.size();
  return xml.substr(from + open.size(), to - from - open.size());
}

std::optional<std::string_view> element(std::string_view xml, std::string_view name) {
  std::size_t at = 0;
  return element(xml, name, at);
}

// All elements of a name. Returns the text around them, in which a search finds no nested element.
std::string take_elements(std::string_view xml, std::string_view name,
                          std::vector<std::string_view>& out) {
  std::string rest;
  std::size_t at = 0, from = 0;
  while (const auto found = element(xml, name, at)) {
    out.push_back(*found);
    const auto begin = static_cast<std::size_t>(found->data() - xml.data());
    rest += xml.substr(from, begin - (name.size() + 2) - from);
    from = at;
  }
  rest += xml.substr(from);
  return rest;
}

// `&#34;` or `&#x22;` at the start: the character and the length of the entity. ASCII only.
std::optional<std::pair<char, std::size_t>> numbered_entity(std::string_view text) {
  const std::size_t end = text.find(';');
  if (!text.starts_with("&#") || end == std::string_view::npos || end > 8) return std::nullopt;
  const bool is_hex = text.size() > 2 && text[2] == 'x';
  const auto digits = text.substr(is_hex ? 3 : 2, end - (is_hex ? 3 : 2));
  const auto value = base::parse_number<unsigned>(digits, is_hex ? 16 : 10);
  if (!value.has_value() || *value == 0 || *value > 127) return std::nullopt;
  return std::pair(static_cast<char>(*value), end + 1);
}

std::string without_entities(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    bool found = false;
    if (const auto numbered = numbered_entity(text.substr(i))) {
      out.push_back(numbered->first);
      i += numbered->second;
      continue;
    }
    for (const auto& [entity, c] : kEntities) {
      if (!text.substr(i).starts_with(entity)) continue;
      out.push_back(c);
      i += entity.size();
      found = true;
      break;
    }
    if (!found) out.push_back(text[i++]);
  }
  return out;
}

std::string with_entities(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto entity = std::ranges::find(kEntities, c, [](const auto& e) { return e.second; });
    if (entity == kEntities.end()) {
      out.push_back(c);
    } else {
      out += entity->first;
    }
  }
  return out;
}

std::string without_percents(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digits = std::string_view(text).substr(i + 1, 2);
    const auto value = text[i] == '%' && digits.size() == 2
                           ? base::parse_number<unsigned>(digits, 16)
                           : std::nullopt;
    if (value.has_value()) {
      out.push_back(static_cast<char>(*value));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool parse_object(std::string_view xml, bool is_encoded, ObjectInfo& out) {
  const auto key = element(xml, "Key"), size = element(xml, "Size");
  if (!key.has_value() || !size.has_value()) return false;
  out.key = without_entities(*key);
  if (is_encoded) out.key = without_percents(out.key);
  const auto bytes = base::parse_number<std::uint64_t>(*size);
  out.size_bytes = bytes.value_or(0);
  return bytes.has_value();
}

constexpr std::size_t kMaxVersionIdBytes = 1024;

// An id becomes a part of requests.
bool is_version_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxVersionIdBytes &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string decoded_key(std::string_view xml, bool is_encoded) {
  std::string out = without_entities(xml);
  return is_encoded ? without_percents(out) : out;
}

// Of an id that begins with the time of its creation (a ULID): versitygw's. There, a version that
// another one replaces gets the time of its replacement, and a deletion that of the object.
std::optional<ServerTime> time_of_id(std::string_view id) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  constexpr std::size_t kIdDigits = 26, kTimeDigits = 10;
  if (id.size() != kIdDigits || id.front() > '7') return std::nullopt;
  std::uint64_t ms = 0;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const std::size_t digit = kDigits.find(id[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    if (i < kTimeDigits) ms = ms << 5 | digit;
  }
  constexpr std::uint64_t kMaxMs = 9'000'000'000'000;  // in nanoseconds, in 64 bits
  if (ms > kMaxMs) return std::nullopt;
  return ServerTime(std::chrono::milliseconds(ms));
}

bool parse_version(std::string_view xml, bool is_deletion, bool is_encoded, ObjectVersion& out) {
  const auto key = element(xml, "Key"), id = element(xml, "VersionId"),
             time = element(xml, "LastModified");
  if (!key.has_value() || !id.has_value() || !time.has_value()) return false;
  out.name = {decoded_key(*key, is_encoded), without_entities(*id)};
  out.is_newest = element(xml, "IsLatest") == "true";
  out.is_deletion = is_deletion;
  const auto put_at = base::parse_utc_time(*time);
  const auto bytes = is_deletion
                         ? std::optional<std::uint64_t>(0)
                         : base::parse_number<std::uint64_t>(element(xml, "Size").value_or(""));
  if (!is_version_id(out.name.id) || !put_at.has_value() || !bytes.has_value()) return false;
  out.put_at = time_of_id(out.name.id).value_or(*put_at);
  out.size_bytes = *bytes;
  return true;
}

// The next of the two elements at or after `at`; sets `at` to the position after it.
struct VersionElement {
  std::string_view xml;
  bool is_deletion = false;
};
std::optional<VersionElement> next_version(std::string_view xml, std::size_t& at) {
  constexpr const char *kVersion = "Version", *kDeletion = "DeleteMarker";
  const std::size_t version = xml.find("<Version>", at), deletion = xml.find("<DeleteMarker>", at);
  if (version == std::string_view::npos && deletion == std::string_view::npos) return std::nullopt;
  const bool is_deletion = deletion < version;
  const auto found = element(xml, is_deletion ? kDeletion : kVersion, at);
  if (!found.has_value()) return std::nullopt;
  return VersionElement{*found, is_deletion};
}

}  // namespace

S3Error parse_s3_error(std::span<const std::byte> xml) {
  const std::string_view text = text_of(xml);
  return {without_entities(element(text, "Code").value_or("")),
          without_entities(element(text, "Message").value_or(""))};
}

bool parse_s3_listing(std::span<const std::byte> xml, S3Listing& out) {
  out = {};
  const std::string_view text = text_of(xml);
  if (text.find("<ListBucketResult") == std::string_view::npos) return false;
  std::vector<std::string_view> objects;
  const std::string rest = take_elements(text, "Contents", objects);
  const bool is_encoded = element(rest, "EncodingType").value_or("") == "url";
  for (const std::string_view object : objects) {
    if (!parse_object(object, is_encoded, out.objects.emplace_back())) return false;
  }
  if (element(rest, "IsTruncated").value_or("") != "true") return true;
  out.next = without_entities(element(rest, "NextContinuationToken").value_or(""));
  return !out.next.empty();
}

std::string s3_deletion(std::span<const std::string> keys) {
  std::string out =
      R"(<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>)";
  for (const std::string& key : keys)
    out += "<Object><Key>" + with_entities(key) + "</Key></Object>";
  return out + "</Delete>";
}

bool parse_s3_deletion(std::span<const std::byte> xml, std::vector<std::string>& kept) {
  kept.clear();
  const std::string_view text = text_of(xml);
  if (text.find("<DeleteResult") == std::string_view::npos) return false;
  std::vector<std::string_view> errors;
  take_elements(text, "Error", errors);
  for (const std::string_view error : errors) {
    const auto key = element(error, "Key");
    if (!key.has_value()) return false;
    kept.push_back(without_entities(*key));
  }
  return true;
}

bool parse_s3_versions(std::span<const std::byte> xml, S3Versions& out) {
  out = {};
  const std::string_view text = text_of(xml);
  if (text.find("<ListVersionsResult") == std::string_view::npos) return false;
  const bool is_encoded = element(text, "EncodingType").value_or("") == "url";
  std::size_t at = 0;
  while (const auto found = next_version(text, at)) {
    if (!parse_version(found->xml, found->is_deletion, is_encoded, out.versions.emplace_back())) {
      return false;
    }
  }
  if (element(text, "IsTruncated").value_or("") != "true") return true;
  out.next = {decoded_key(element(text, "NextKeyMarker").value_or(""), is_encoded),
              without_entities(element(text, "NextVersionIdMarker").value_or(""))};
  return !out.next.key.empty() && (out.next.id.empty() || is_version_id(out.next.id));
}

std::string s3_version_deletion(std::span<const VersionName> versions) {
  std::string out =
      R"(<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>)";
  for (const VersionName& version : versions) {
    out += "<Object><Key>" + with_entities(version.key) + "</Key><VersionId>" +
           with_entities(version.id) + "</VersionId></Object>";
  }
  return out + "</Delete>";
}

bool parse_s3_version_deletion(std::span<const std::byte> xml, std::vector<VersionName>& kept) {
  kept.clear();
  const std::string_view text = text_of(xml);
  if (text.find("<DeleteResult") == std::string_view::npos) return false;
  std::vector<std::string_view> errors;
  take_elements(text, "Error", errors);
  for (const std::string_view error : errors) {
    const auto key = element(error, "Key"), id = element(error, "VersionId");
    if (!key.has_value() || !id.has_value()) return false;
    kept.push_back({without_entities(*key), without_entities(*id)});
  }
  return true;
}

bool parse_s3_retention(std::span<const std::byte> xml, S3Retention& out) {
  const std::string_view text = text_of(xml);
  const auto until = base::parse_utc_time(element(text, "RetainUntilDate").value_or(""));
  if (!until.has_value()) return false;
  out = {std::string(element(text, "Mode").value_or("")), *until};
  return true;
}

std::string s3_retention(const std::string& mode, ServerTime until) {
  return "<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>" + mode +
         "</Mode><RetainUntilDate>" + base::utc_seconds(until) + "</RetainUntilDate></Retention>";
}

bool has_s3_versions(std::span<const std::byte> xml) {
  const auto status = element(text_of(xml), "Status");
  return status == "Enabled" || status == "Suspended";
}

bool has_s3_object_lock(std::span<const std::byte> xml) {
  return element(text_of(xml), "ObjectLockEnabled") == "Enabled";
}

}  // namespace vellum::remote
