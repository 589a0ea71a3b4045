#include "cli/remote/transfer_arguments.hpp"

#include "base/fail.hpp"
#include "cli/options/arguments.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kMaxGivenConnections = 256;
constexpr const char* kLimitRate = "--limit-rate";

}  // namespace

std::shared_ptr<remote::ObjectStore> TransferArguments::open(const std::string& url) const {
  remote::TransferLimits limits;
  limits.connections = connections;
  if (!limit_rate.empty()) {
    limits.bytes_per_second = parse_size(kLimitRate, limit_rate);
    if (limits.bytes_per_second == 0) {
      fail(Errc::invalid_argument, "{}: at 0 bytes a second nothing is transferred", kLimitRate);
    }
  }
  return remote::open_object_store(base::posix_fs(), url, remote::remote_timeout(), limits);
}

void add_transfer_options(CLI::App& command, TransferArguments& arguments) {
  command
      .add_option(kLimitRate, arguments.limit_rate,
                  "Transfer at most this many bytes a second on average, such as 5M")
      ->type_name("BYTES");
  command.add_option("--connections", arguments.connections, "Use at most this many connections")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, kMaxGivenConnections));
}

}  // namespace vellum::cli
