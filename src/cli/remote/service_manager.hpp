// cli/remote/service_manager.hpp: tells a service manager about this process (sd_notify(3)).
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace vellum::cli {

// Does nothing unless the manager has named its socket in NOTIFY_SOCKET. Failures are ignored, as
// the protocol wants.
class ServiceManager {
 public:
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // The process is ready, and its state in a line; sends what has changed. Call it often: it also
  // sends the sign of life that a watchdog wants.
  void tell(const std::string& status);
  void tell_end();

 private:
  void send(const std::string& text) const;

  int socket_ = -1;
  std::string status_;
  bool is_ready_ = false;
  std::optional<std::chrono::microseconds> sign_interval_;  // none: no watchdog
  std::chrono::steady_clock::time_point last_sign_{};
};

}  // namespace vellum::cli
