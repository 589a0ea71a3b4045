#include "remote/s3_history_lib.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utc_time.hpp"

namespace vellum::remote::test {
namespace {

S3Server::Answer error(int status, const std::string& code) {
  return {status, "<Error><Code>" + code + "</Code><Message>no</Message></Error>", ""};
}

std::string parameter(const S3Request& request, const std::string& name) {
  const auto at = request.query.find(name);
  return at == request.query.end() ? "" : at->second;
}

std::string text_in(const std::string& xml, const std::string& element, std::size_t from = 0) {
  const std::size_t begin = xml.find("<" + element + ">", from);
  if (begin == std::string::npos) return "";
  const std::size_t start = begin + element.size() + 2;
  return xml.substr(start, xml.find('<', start) - start);
}

// "20261124T103000Z" as seconds.
std::optional<S3History::Time> time_of_request(const S3Request& request) {
  const auto at = request.headers.find("x-amz-date");
  if (at == request.headers.end() || at->second.size() != 16) return std::nullopt;
  const std::string& t = at->second;
  return base::parse_utc_time(t.substr(0, 4) + "-" + t.substr(4, 2) + "-" + t.substr(6, 2) + "T" +
                              t.substr(9, 2) + ":" + t.substr(11, 2) + ":" + t.substr(13, 2) + "Z");
}

std::string http_date(S3History::Time time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  std::strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
  return text;
}

S3Server::Answer body_of(const S3Request& request, const std::string& body) {
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return {200, body, ""};
  std::size_t first = 0, last = 0;
  if (std::sscanf(range->second.c_str(), "bytes=%zu-%zu", &first, &last) != 2 ||
      first >= body.size()) {
    return error(416, "InvalidRange");
  }
  return {206, body.substr(first, last - first + 1), ""};
}

}  // namespace

VersionedServer::VersionedServer() {
  server.answer = [this](const S3Request& request) { return history.handle(request); };
}

S3History::Time S3History::now() const {
  return std::chrono::system_clock::now() + std::chrono::seconds(ahead_s.load());
}

std::map<std::string, S3History::Versions> S3History::all() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

void S3History::lose(const std::string& key, const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (Version* version = find(key, id)) version->locked_until = {};
  remove_version(key, id);
}

void S3History::add(const std::string& key, const std::string& body, Time put_at, bool is_newest) {
  const std::lock_guard lock(mutex_);
  Versions& versions = keys_[key];
  versions.insert(is_newest ? versions.end() : versions.begin(), {next_id(), body, put_at, {}});
}

void S3History::change(const std::string& key, const std::function<void(Version&)>& change) {
  const std::lock_guard lock(mutex_);
  change(keys_.at(key).back());
}

std::optional<S3Server::Answer> S3History::handle(const S3Request& request) {
  const std::lock_guard lock(mutex_);
  const auto time = time_of_request(request);
  if (time.has_value() &&
      (*time > now() + std::chrono::minutes(15) || *time < now() - std::chrono::minutes(15))) {
    Answer out = error(403, "RequestTimeTooSkewed");
    out.headers = http_date(now());
    return out;
  }
  const auto asks = [&](const char* what) { return request.query.contains(what); };
  if (asks("versioning")) {
    const bool kept = has_versions;
    return Answer{200,
                  "<VersioningConfiguration><Status>" + std::string(kept ? "Enabled" : "Off") +
                      "</Status></VersioningConfiguration>",
                  ""};
  }
  if (asks("object-lock")) {
    if (!has_lock) return error(404, "ObjectLockConfigurationNotFoundError");
    return Answer{200,
                  "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>"
                  "</ObjectLockConfiguration>",
                  ""};
  }
  if (asks("versions")) return list_versions(request);
  if (request.method == "POST") return remove_many(request);
  if (request.method == "DELETE") return remove(request);
  if (request.method == "PUT") return asks("retention") ? put_retention(request) : put(request);
  return request.key.empty() ? list(request) : get(request);
}

const S3History::Version* S3History::current(const std::string& key) const {
  const auto at = keys_.find(key);
  if (at == keys_.end() || at->second.empty() || at->second.back().is_deletion) return nullptr;
  return &at->second.back();
}

S3History::Version* S3History::find(const std::string& key, const std::string& id) {
  const auto at = keys_.find(key);
  if (at == keys_.end()) return nullptr;
  for (Version& version : at->second) {
    if (version.id == id || (id.empty() && &version == &at->second.back())) return &version;
  }
  return nullptr;
}

std::string S3History::next_id() {
  // Ids are no order.
  ++ids_;
  return fmt::format("v{:x}.{}", (ids_ * 0x9e3779b97f4a7c15u) >> 32, ids_);
}

S3Server::Answer S3History::get(const S3Request& request) const {
  const std::string id = parameter(request, "versionId");
  const Version* const version =
      id.empty() ? current(request.key) : const_cast<S3History*>(this)->find(request.key, id);
  if (version == nullptr || version->is_deletion) return error(404, "NoSuchKey");
  if (!request.query.contains("retention")) return body_of(request, version->body);
  if (version->locked_until == Time{}) return error(404, "NoSuchObjectLockConfiguration");
  return {200,
          "<Retention><Mode>" + version->mode + "</Mode><RetainUntilDate>" +
              (version->until_text.empty() ? base::utc_nanoseconds(version->locked_until)
                                           : version->until_text) +
              "</RetainUntilDate></Retention>",
          ""};
}

S3Server::Answer S3History::put(const S3Request& request) {
  if (request.headers.contains("if-none-match") && current(request.key) != nullptr) {
    return error(412, "PreconditionFailed");
  }
  Version version{next_id(), request.body, now(), {}};
  if (const auto mode = request.headers.find("x-amz-object-lock-mode");
      mode != request.headers.end()) {
    if (!has_lock || mode->second != "COMPLIANCE") return error(400, "InvalidRequest");
    if (!request.headers.contains("x-amz-checksum-sha256")) return error(400, "InvalidRequest");
    const auto until =
        base::parse_utc_time(request.headers.at("x-amz-object-lock-retain-until-date"));
    if (!until.has_value() || *until <= now()) return error(400, "InvalidArgument");
    version.locked_until = *until;
  }
  Versions& versions = keys_[request.key];
  if (!has_versions) versions.clear();
  versions.push_back(std::move(version));
  return {200, "", ""};
}

S3Server::Answer S3History::put_retention(const S3Request& request) {
  Version* const version = find(request.key, parameter(request, "versionId"));
  if (version == nullptr || version->is_deletion) return error(404, "NoSuchVersion");
  if (!request.headers.contains("x-amz-checksum-sha256")) return error(400, "InvalidRequest");
  const auto until = base::parse_utc_time(text_in(request.body, "RetainUntilDate"));
  if (!until.has_value() || text_in(request.body, "Mode") != "COMPLIANCE") {
    return error(400, "MalformedXML");
  }
  const bool is_longer = *until >= version->locked_until && version->mode == "COMPLIANCE" &&
                         version->until_text.empty();
  if (version->locked_until > now() && !is_longer) return error(403, "AccessDenied");
  version->locked_until = *until;
  if (moves_times) version->put_at = now();
  return {200, "", ""};
}

// False: it is locked.
bool S3History::remove_version(const std::string& key, const std::string& id) {
  const auto at = keys_.find(key);
  if (at == keys_.end()) return true;
  const auto version = std::ranges::find(at->second, id, &Version::id);
  if (version == at->second.end()) return true;
  if (version->locked_until > now()) return false;
  at->second.erase(version);
  if (at->second.empty()) keys_.erase(at);
  return true;
}

S3Server::Answer S3History::remove(const S3Request& request) {
  if (forbids_deletes) return error(403, "AccessDenied");
  const std::string id = parameter(request, "versionId");
  if (!id.empty())
    return remove_version(request.key, id) ? Answer{204, "", ""} : error(403, "AccessDenied");
  if (!has_versions) {
    keys_.erase(request.key);
  } else {
    keys_[request.key].push_back({next_id(), "", now(), {}, true});
  }
  return {204, "", ""};
}

S3Server::Answer S3History::remove_many(const S3Request& request) {
  if (forbids_deletes) return error(403, "AccessDenied");
  std::string errors;
  for (std::size_t at = 0; (at = request.body.find("<Object>", at)) != std::string::npos; ++at) {
    const std::string object = request.body.substr(at, request.body.find("</Object>", at) - at);
    const std::string key = text_in(object, "Key"), id = text_in(object, "VersionId");
    if (id.empty() && has_versions) {
      keys_[key].push_back({next_id(), "", now(), {}, true});
    } else if (id.empty()) {
      keys_.erase(key);
    } else if (!remove_version(key, id)) {
      errors += "<Error><Key>" + key + "</Key><VersionId>" + id +
                "</VersionId><Code>AccessDenied</Code></Error>";
    }
  }
  return {200, "<DeleteResult>" + errors + "</DeleteResult>", ""};
}

S3Server::Answer S3History::list(const S3Request& request) const {
  const std::string prefix = parameter(request, "prefix"),
                    after = parameter(request, "continuation-token");
  const std::size_t most = std::stoul(parameter(request, "max-keys"));
  std::string body = "<ListBucketResult>", last, next;
  std::size_t count = 0;
  for (const auto& [key, versions] : keys_) {
    if (!key.starts_with(prefix) || key <= after || current(key) == nullptr) continue;
    if (count++ == most) {
      next = last;
      break;
    }
    last = key;
    body += fmt::format("<Contents><Key>{}</Key><Size>{}</Size></Contents>", key,
                        current(key)->body.size());
  }
  if (!next.empty()) {
    body += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next +
            "</NextContinuationToken>";
  }
  return {200, body + "</ListBucketResult>", ""};
}

S3Server::Answer S3History::list_versions(const S3Request& request) const {
  const std::string prefix = parameter(request, "prefix");
  const std::pair after(parameter(request, "key-marker"), parameter(request, "version-id-marker"));
  std::string body = "<ListVersionsResult><EncodingType>url</EncodingType>", deletions;
  std::size_t count = 0;
  std::pair<std::string, std::string> last;
  bool is_cut = false, is_after = after.first.empty();
  for (const auto& [key, versions] : keys_) {
    if (!key.starts_with(prefix) || is_cut) continue;
    if (!is_after && after.second.empty() && key > after.first) is_after = true;
    if (!is_after && key > after.first) is_after = true;
    for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
      if (!is_after) {
        is_after = key == after.first && version->id == after.second;
        continue;
      }
      if (count++ == most_listed) {
        is_cut = true;
        break;
      }
      last = {key, version->id};
      const char* const name = version->is_deletion ? "DeleteMarker" : "Version";
      const std::string entry = fmt::format(
          "<{}><Key>{}</Key><VersionId>{}</VersionId><IsLatest>{}</IsLatest><LastModified>{}"
          "</LastModified><Size>{}</Size></{}>",
          name, uri_encoded(key, false), version->id, version == versions.rbegin(),
          base::utc_nanoseconds(version->put_at), version->body.size(), name);
      (version->is_deletion && deletions_last ? deletions : body) += entry;
    }
  }
  body += deletions;
  if (is_cut) {
    body += "<IsTruncated>true</IsTruncated><NextKeyMarker>" + uri_encoded(last.first, false) +
            "</NextKeyMarker><NextVersionIdMarker>" + last.second + "</NextVersionIdMarker>";
  }
  return {200, body + "</ListVersionsResult>", ""};
}

}  // namespace vellum::remote::test
