// Certificates are verified: an untrusted server gets no request.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "remote/bound_port.hpp"
#include "remote/s3/s3_engine.hpp"

namespace vellum::remote::test {
namespace {

bool accepts(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool accepted =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return accepted;
}

// OpenSSL's test server with a self-signed certificate. It serves the files of a directory.
class TlsServer {
 public:
  explicit TlsServer(const std::string& directory) : directory_(directory) {
    const std::string make =
        "cd '" + directory +
        "' && openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert " +
        "-days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1 >/dev/null 2>&1";
    EXPECT_EQ(std::system(make.c_str()), 0);
    port_ = BoundPort().number();  // other processes use ports, too
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string accept = "127.0.0.1:" + std::to_string(port_);
      if (::chdir(directory.c_str()) == 0 && std::freopen("/dev/null", "w", stdout) != nullptr) {
        ::execlp("openssl", "openssl", "s_server", "-accept", accept.c_str(), "-key", "key",
                 "-cert", "cert", "-WWW", "-quiet", nullptr);
      }
      ::_exit(127);
    }
    while (!accepts(port_) && ::waitpid(pid_, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~TlsServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  S3Options options() const {
    S3Options out;
    out.url = "s3://bucket";
    out.endpoint = "https://127.0.0.1:" + std::to_string(port_);
    out.bucket = "bucket";
    out.region = "r";
    out.credentials = {"id", "secret", ""};
    out.attempts = 2;
    out.first_pause = std::chrono::minutes(10);  // a second attempt would never end
    out.timeout = out.max_pause = std::chrono::hours(1);
    return out;
  }
  std::string certificate() const { return directory_ + "/cert"; }

 private:
  const std::string directory_;
  int port_ = 0;
  pid_t pid_ = -1;
};

TEST(S3Tls, OnlyAServerThatIsVouchedForIsSpokenTo) {
  if (std::system("openssl version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no program openssl here";
  vellum::test::TempDirectory directory;
  std::filesystem::create_directory(directory / "bucket");
  std::ofstream(directory / "bucket/a") << "content";
  const TlsServer server(directory / "");
  try {
    make_s3_engine(server.options())->get("a", 100);
    ADD_FAILURE() << "the certificate was believed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::io);
    EXPECT_NE(std::string(e.what()).find("certificate"), std::string::npos) << e.what();
  }
  S3Options trusting = server.options();
  trusting.http.ca_bundle = server.certificate();
  S3Options patient = trusting;
  patient.attempts = 10;
  patient.first_pause = std::chrono::milliseconds(10);
  EXPECT_EQ(make_s3_engine(patient)->get("a", 100).size(), 7u);
  // The certificate is for an address, and not for this name.
  trusting.endpoint.replace(trusting.endpoint.find("127.0.0.1"), 9, "localhost");
  EXPECT_ERRC(make_s3_engine(trusting)->get("a", 100), Errc::io);
  trusting.http.ca_bundle = directory / "absent";
  EXPECT_ERRC(make_s3_engine(trusting)->get("a", 100), Errc::io);
}

}  // namespace
}  // namespace vellum::remote::test
