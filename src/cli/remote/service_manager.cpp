#include "cli/remote/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/environment.hpp"
#include "base/parse_number.hpp"

namespace vellum::cli {
namespace {

std::string environment_value(const char* name) {
  return std::string(base::environment(name).value_or(""));
}

// A datagram socket that is connected to `path`; -1: there is none. "@" begins an abstract name.
int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  ::close(fd);
  return -1;
}

// Half of the time after which the watchdog acts.
std::optional<std::chrono::microseconds> interval_of_signs() {
  const std::string process = environment_value("WATCHDOG_PID");
  if (!process.empty() && base::parse_number<pid_t>(process) != ::getpid()) return std::nullopt;
  const auto time = base::parse_number<std::uint64_t>(environment_value("WATCHDOG_USEC"));
  if (!time.has_value() || *time == 0 || *time > INT64_MAX) return std::nullopt;
  return std::chrono::microseconds(static_cast<std::int64_t>(*time / 2));
}

}  // namespace

ServiceManager::ServiceManager()
    : socket_(connect_to(environment_value("NOTIFY_SOCKET"))),
      sign_interval_(interval_of_signs()) {}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::send(const std::string& text) const {
  [[maybe_unused]] const ssize_t sent =
      ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ServiceManager::tell(const std::string& status) {
  if (socket_ < 0) return;
  std::string text;
  if (!is_ready_) text += "READY=1\n";
  if (!is_ready_ || status != status_) text += "STATUS=" + status + "\n";
  const auto now = std::chrono::steady_clock::now();
  if (sign_interval_.has_value() && now - last_sign_ >= *sign_interval_) {
    text += "WATCHDOG=1\n";
    last_sign_ = now;
  }
  is_ready_ = true;
  status_ = status;
  if (!text.empty()) send(text);
}

void ServiceManager::tell_end() {
  if (socket_ >= 0) send("STOPPING=1\n");
}

}  // namespace vellum::cli
