#include "remote/s3_server_lib.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"

namespace vellum::remote::test {
namespace {

constexpr const char* kBucket = "bucket";
const Credentials kCredentials{"AKIDTEST", "secret/of+the test", ""};

std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive(int connection, std::string& buffer) {
  char bytes[65536];
  const ssize_t got = ::recv(connection, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer.append(bytes, static_cast<std::size_t>(got));
  return true;
}

void parse_head(const std::string& head, S3Request& out) {
  std::istringstream in(head);
  std::string line;
  std::getline(in, line);
  out.method = line.substr(0, line.find(' '));
  out.target = line.substr(out.method.size() + 1, line.rfind(' ') - out.method.size() - 1);
  const auto mark = std::min(out.target.find('?'), out.target.size());
  out.path = out.target.substr(0, mark);
  std::istringstream parts(out.target.substr(std::min(mark + 1, out.target.size())));
  for (std::string part; std::getline(parts, part, '&');) {
    const auto equals = part.find('=');
    out.query[unescaped(part.substr(0, equals))] = unescaped(part.substr(equals + 1));
  }
  while (std::getline(in, line) && line.size() > 1) {
    const auto colon = line.find(':');
    const auto from = line.find_first_not_of(' ', colon + 1);
    const std::string value =
        from == std::string::npos ? "" : line.substr(from, line.find_last_not_of("\r") - from + 1);
    out.headers[lowered(line.substr(0, colon))] = value;
  }
  const std::string start = std::string("/") + kBucket + "/";
  if (out.path.starts_with(start)) out.key = unescaped(out.path.substr(start.size()));
}

std::string error_xml(const std::string& code) {
  return "<?xml version=\"1.0\"?><Error><Code>" + code +
         "</Code><Message>It &amp; is a test</Message></Error>";
}

}  // namespace

S3Server::S3Server() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no port for the test's server");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

S3Server::~S3Server() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  for (std::thread& thread : threads_) thread.join();
}

std::string S3Server::endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

S3Options S3Server::options(const std::string& prefix) const {
  S3Options out;
  out.url = "s3://bucket/" + prefix;
  out.endpoint = endpoint();
  out.bucket = kBucket;
  out.prefix = prefix;
  out.region = "test-1";
  out.credentials = kCredentials;
  out.http.connections = 8;
  out.http.stall_timeout = std::chrono::seconds(5);
  out.first_pause = std::chrono::milliseconds(1);
  out.max_pause = std::chrono::milliseconds(8);
  return out;
}

std::map<std::string, std::string> S3Server::objects() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

void S3Server::set(const std::string& key, const std::string& body) {
  const std::lock_guard lock(mutex_);
  objects_[key] = body;
}

void S3Server::erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  objects_.erase(key);
}

void S3Server::accept_all() {
  for (;;) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const int on = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      ::close(connection);
      return;
    }
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void S3Server::serve(int connection) {
  std::string buffer;
  while (serve_one(connection, buffer)) {
  }
  const std::lock_guard lock(mutex_);
  std::erase(connections_, connection);
  ::close(connection);
}

bool S3Server::serve_one(int connection, std::string& buffer) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!receive(connection, buffer)) return false;
  }
  S3Request request;
  parse_head(buffer.substr(0, end + 2), request);
  request.number = ++requests_;
  const auto length = request.headers.find("content-length");
  const std::size_t body = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer.size() < end + 4 + body) {
    if (!receive(connection, buffer)) return false;
  }
  request.body = buffer.substr(end + 4, body);
  buffer.erase(0, end + 4 + body);

  const Fault chosen = fault ? fault(request) : Fault::none;
  if (chosen == Fault::reset_before) return false;
  if (chosen == Fault::late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Reply reply;
  if (auto given = answer ? answer(request) : std::nullopt) {
    reply = std::move(*given);
  } else if (chosen == Fault::error_500) {
    reply = {500, error_xml("InternalError"), ""};
  } else if (chosen == Fault::error_503) {
    reply = {503, error_xml("SlowDown"), ""};
  } else if (chosen == Fault::wrong_clock) {
    reply = {403, error_xml("RequestTimeTooSkewed"), "Date: Wed, 01 Jan 2031 00:00:00 GMT\r\n"};
  } else if (const std::string problem = signature_problem(request); !problem.empty()) {
    reply = {403, error_xml(problem), ""};
  } else {
    if (chosen == Fault::twice) handle(request);
    reply = handle(request);
  }
  return send_reply(connection, request, chosen, std::move(reply));
}

bool S3Server::send_reply(int connection, const S3Request& request, Fault chosen, Reply reply) {
  if (chosen == Fault::lost_reply) return false;
  if (chosen == Fault::flipped_body && !reply.body.empty())
    reply.body[reply.body.size() / 2] ^= 0x10;
  const std::string head = fmt::format("HTTP/1.1 {} Status\r\nContent-Length: {}\r\n{}\r\n",
                                       reply.status, reply.body.size(), reply.headers);
  if (chosen == Fault::cut_body) {
    send_all(connection, head + reply.body.substr(0, reply.body.size() / 2));
    return false;
  }
  static_cast<void>(request);
  return send_all(connection, head + reply.body);
}

std::string S3Server::signature_problem(const S3Request& request) const {
  const auto header = [&](const std::string& name) {
    const auto at = request.headers.find(name);
    return at == request.headers.end() ? "" : at->second;
  };
  const auto* body = reinterpret_cast<const std::byte*>(request.body.data());
  if (header("x-amz-content-sha256") != base::hex(base::sha256({body, request.body.size()}))) {
    return "XAmzContentSHA256Mismatch";
  }
  const std::string given = header("authorization");
  const auto from = given.find("SignedHeaders=") + 14;
  std::istringstream names(given.substr(from, given.find(',', from) - from));
  RequestToSign to_sign{request.method, request.path, {}, {}, header("x-amz-content-sha256")};
  for (const auto& item : request.query) to_sign.query.push_back(item);
  bool host_signed = false;
  for (std::string name; std::getline(names, name, ';');) {
    to_sign.headers.emplace_back(name, header(name));
    host_signed |= name == "host";
  }
  if (!host_signed ||
      sign(to_sign, {"test-1", "s3", header("x-amz-date")}, kCredentials) != given) {
    return "SignatureDoesNotMatch";
  }
  // The sent query must be the signed one, in the same order.
  const auto mark = request.target.find('?');
  if (mark != std::string::npos &&
      request.target.substr(mark + 1) != canonical_query(to_sign.query)) {
    return "SignatureDoesNotMatch";
  }
  return "";
}

S3Server::Reply S3Server::handle(const S3Request& request) {
  if (request.key.empty() && request.method == "POST" && request.query.contains("delete") &&
      deletes_many) {
    return delete_many(request);
  }
  if (request.key.empty())
    return request.method == "GET" ? list(request) : Reply{405, error_xml("MethodNotAllowed"), ""};
  if (request.method == "GET") return get(request);
  if (request.method == "PUT") return put(request);
  const std::lock_guard lock(mutex_);
  objects_.erase(request.key);
  return {204, "", ""};
}

S3Server::Reply S3Server::get(const S3Request& request) {
  const std::lock_guard lock(mutex_);
  const auto at = objects_.find(request.key);
  if (at == objects_.end()) return {404, error_xml("NoSuchKey"), ""};
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return {200, at->second, ""};
  std::size_t first = 0, last = 0;
  if (std::sscanf(range->second.c_str(), "bytes=%zu-%zu", &first, &last) != 2 ||
      first >= at->second.size()) {
    return {416, error_xml("InvalidRange"), ""};
  }
  return {206, at->second.substr(first, last - first + 1), ""};
}

S3Server::Reply S3Server::put(const S3Request& request) {
  const bool is_conditional = request.headers.contains("if-none-match");
  std::unique_lock lock(mutex_);
  if (is_conditional && objects_.contains(request.key))
    return {412, error_xml("PreconditionFailed"), ""};
  if (is_conditional && conditional_writes_race) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lock.lock();
  }
  objects_[request.key] = request.body;
  return {200, "", ""};
}

S3Server::Reply S3Server::delete_many(const S3Request& request) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; (at = request.body.find("<Key>", at)) != std::string::npos;) {
    at += 5;
    keys.push_back(request.body.substr(at, request.body.find("</Key>", at) - at));
  }
  if (!request.headers.contains("x-amz-checksum-sha256") || keys.size() > 1000)
    return {400, error_xml("InvalidRequest"), ""};
  std::string errors;
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    if (key == undeletable) {
      errors += "<Error><Key>" + key + "</Key><Code>InternalError</Code></Error>";
    } else {
      objects_.erase(key);
    }
  }
  return {200, "<DeleteResult xmlns=\"x\">" + errors + "</DeleteResult>", ""};
}

S3Server::Reply S3Server::list(const S3Request& request) {
  const auto parameter = [&](const std::string& name) {
    const auto at = request.query.find(name);
    return at == request.query.end() ? "" : at->second;
  };
  const std::string prefix = parameter("prefix"), after = parameter("continuation-token");
  const std::size_t most = std::min<std::size_t>(std::stoul(parameter("max-keys")), most_listed);
  const std::lock_guard lock(mutex_);
  std::string body =
      "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType>";
  std::size_t count = 0;
  std::string last, next;
  for (auto at = after.empty() ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
       at != objects_.end() && at->first.starts_with(prefix); ++at) {
    if (count++ == most) {
      next = last;
      break;
    }
    last = at->first;
    body +=
        fmt::format("<Contents><Key>{}</Key><ETag>&quot;x&quot;</ETag><Size>{}</Size></Contents>",
                    uri_encoded(last, false), at->second.size());
  }
  body += next.empty() ? "<IsTruncated>false</IsTruncated>"
                       : "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next +
                             "</NextContinuationToken>";
  return {200, body + "</ListBucketResult>", ""};
}

}  // namespace vellum::remote::test
