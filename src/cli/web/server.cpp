#include "cli/web/server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "cli/web/pages/html.hpp"

namespace vellum::cli {
namespace {

constexpr unsigned kMaxConnections = 128;
// Beyond this number, a new connection ends the one that has been idle longest: idle connections
// cannot exclude new ones.
constexpr std::size_t kKeptConnections = 96;
constexpr unsigned kTimeoutSeconds = 30;
constexpr std::size_t kDownloadBytes = 256 << 10;  // read at once

// The open connections, the longest idle first. Threads: the server's one thread.
class Connections {
 public:
  void add(MHD_Connection* connection) {
    if (open_.size() >= kKeptConnections) {
      const auto* const info = MHD_get_connection_info(
          open_.front(), MHD_CONNECTION_INFO_CONNECTION_FD);  // the server sees its end, and closes
      if (info != nullptr) ::shutdown(info->connect_fd, SHUT_RDWR);
      open_.erase(open_.begin());
    }
    open_.push_back(connection);
  }
  void remove(MHD_Connection* connection) { std::erase(open_, connection); }
  void note_request(MHD_Connection* connection) {
    if (std::erase(open_, connection) != 0) open_.push_back(connection);
  }

 private:
  std::vector<MHD_Connection*> open_;
};

// A page may contain untrusted text from a store: nothing of it runs, loads external resources, is
// cached by the browser, or reveals the token to another site.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

MHD_Result add_parameter(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& query = *static_cast<std::map<std::string, std::string>*>(to);
  query[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

Request request_of(MHD_Connection* connection, const char* url, const char* method) {
  Request request;
  request.method = method;
  request.path = url;
  const char* const host =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  if (host != nullptr) request.host = host;
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, &request.query);
  return request;
}

ssize_t read_download(void* response, std::uint64_t offset, char* to, std::size_t most_bytes) {
  try {
    return static_cast<ssize_t>(
        static_cast<const Response*>(response)->read(offset, to, most_bytes));
  } catch (const std::exception&) {
    return MHD_CONTENT_READER_END_WITH_ERROR;  // the browser sees an incomplete download
  }
}

MHD_Response* message_of(const Response& response) {
  if (!response.read)
    return MHD_create_response_from_buffer(
        response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  auto kept = std::make_unique<Response>(response);
  MHD_Response* const message = MHD_create_response_from_callback(
      response.file_bytes, kDownloadBytes, read_download, kept.get(),
      [](void* done) { delete static_cast<Response*>(done); });
  if (message == nullptr) return nullptr;
  kept.release();
  const std::string name = "attachment; filename*=UTF-8''" + in_query(response.file_name);
  MHD_add_response_header(message, "Content-Disposition", name.c_str());
  return message;
}

MHD_Result send(MHD_Connection* connection, const Response& response) {
  MHD_Response* const message = message_of(response);
  if (message == nullptr) return MHD_NO;
  MHD_add_response_header(message, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(message, name, value);
  const MHD_Result sent = MHD_queue_response(connection, response.status, message);
  MHD_destroy_response(message);
  return sent;
}

}  // namespace

struct Server::Impl {
  const Site& site;
  MHD_Daemon* daemon = nullptr;
  std::atomic<std::uint16_t> port{0};
  Connections connections;

  static void notice(void* self, MHD_Connection* connection, void**,
                     MHD_ConnectionNotificationCode what) {
    auto& connections = static_cast<Impl*>(self)->connections;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) connections.add(connection);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) connections.remove(connection);
  }

  // The first call for a request has its head, the last one all of its body, which is ignored.
  static MHD_Result answer(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char*, std::size_t* body_bytes,
                           void** seen) {
    auto& impl = *static_cast<Impl*>(self);
    static char mark;
    if (*seen == nullptr) {
      impl.connections.note_request(connection);
      *seen = &mark;
      return MHD_YES;
    }
    if (*body_bytes != 0) {
      *body_bytes = 0;
      return MHD_YES;
    }
    try {
      return send(connection, impl.site.answer(request_of(connection, url, method), impl.port));
    } catch (const std::exception&) {
      return MHD_NO;
    }
  }
};

Server::Server(const Site& site, std::uint16_t port) : impl_(new Impl{site, nullptr, {0}, {}}) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  errno = 0;
  impl_->daemon = MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD, port, nullptr, nullptr, &Impl::answer, impl_.get(),
      MHD_OPTION_SOCK_ADDR, reinterpret_cast<sockaddr*>(&address), MHD_OPTION_CONNECTION_LIMIT,
      kMaxConnections, MHD_OPTION_CONNECTION_TIMEOUT, kTimeoutSeconds, MHD_OPTION_NOTIFY_CONNECTION,
      &Impl::notice, impl_.get(), MHD_OPTION_END);
  if (impl_->daemon == nullptr)
    fail(Errc::io, "cannot listen on 127.0.0.1:{}: {}", port, std::strerror(errno));
  impl_->port = MHD_get_daemon_info(impl_->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

Server::~Server() { MHD_stop_daemon(impl_->daemon); }

std::uint16_t Server::port() const noexcept { return impl_->port; }

}  // namespace vellum::cli
