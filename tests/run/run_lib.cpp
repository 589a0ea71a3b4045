#include "run/run_lib.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vellum::cli_test {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, FileCloser>;

TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  if (!file) {
    throw std::runtime_error("tmpfile failed");
  }
  return file;
}

std::string content_of(std::FILE* file) {
  std::rewind(file);
  std::string content;
  std::array<char, 65536> chunk;
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file)) {
    content.append(chunk.data(), got);
  }
  return content;
}

std::vector<char*> c_strings(const Arguments& argv) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void become(const std::vector<char*>& argv) {
  ::execvp(argv[0], argv.data());
  ::_exit(kExecFailed);
}

[[noreturn]] void become(const std::vector<char*>& argv, int out, int err,
                         const InChild& in_child) {
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (in_child) {
    in_child();
  }
  become(argv);
}

void wait_for(pid_t child, Result& result) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) {
    result.status = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  }
}

Arguments vellum_argv(const Arguments& arguments) {
  Arguments argv{VELLUM_CLI};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

// Reads a terminal until its other end is closed; Linux then reports EIO.
std::string drain(int terminal) {
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = ::read(terminal, chunk.data(), chunk.size());
    if (got > 0) {
      text.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

}  // namespace

nlohmann::json Result::json() const {
  EXPECT_EQ(out.find('\n'), out.size() - 1) << "not one line: " << out;
  return nlohmann::json::parse(out);
}

void become_program(const Arguments& argv) { become(c_strings(argv)); }
void become_vellum(const Arguments& arguments) { become_program(vellum_argv(arguments)); }

pid_t child_of(pid_t parent) {
  const std::string number = std::to_string(parent);
  return std::stoi(read_file("/proc/" + number + "/task/" + number + "/children"));
}

Result run_program(const Arguments& argv, const InChild& in_child) {
  const TemporaryFile out = temporary_file();
  const TemporaryFile err = temporary_file();
  const std::vector<char*> pointers = c_strings(argv);
  const pid_t child = ::fork();
  if (child == 0) {
    become(pointers, ::fileno(out.get()), ::fileno(err.get()), in_child);
  }
  Result result;
  wait_for(child, result);
  result.out = content_of(out.get());
  result.err = content_of(err.get());
  return result;
}

Result run(const Arguments& arguments, const InChild& in_child) {
  return run_program(vellum_argv(arguments), in_child);
}

Result run_on_terminal(const Arguments& arguments, unsigned short columns) {
  const TemporaryFile out = temporary_file();
  const Arguments argv = vellum_argv(arguments);
  const std::vector<char*> pointers = c_strings(argv);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  int other_end = -1;
  if (::openpty(&terminal, &other_end, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("openpty failed");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(terminal);
    become(pointers, ::fileno(out.get()), other_end, nullptr);
  }
  ::close(other_end);
  Result result;
  result.err = drain(terminal);
  ::close(terminal);
  wait_for(child, result);
  result.out = content_of(out.get());
  return result;
}

Result run_on_screen(const Arguments& arguments, unsigned short columns) {
  const TemporaryFile err = temporary_file();
  const Arguments argv = vellum_argv(arguments);
  const std::vector<char*> pointers = c_strings(argv);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  int other_end = -1;
  if (::openpty(&terminal, &other_end, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("openpty failed");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(terminal);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    become(pointers, other_end, ::fileno(err.get()), nullptr);
  }
  ::close(other_end);
  Result result;
  result.out = drain(terminal);
  ::close(terminal);
  wait_for(child, result);
  result.err = content_of(err.get());
  std::erase(result.out, '\r');  // the terminal's line ends
  return result;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << content;
  if (!stream.flush()) {
    throw std::runtime_error("cannot write " + path);
  }
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    throw std::runtime_error("cannot read " + path);
  }
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

std::string noise(std::size_t pages, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(pages * 4096, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random() & 0xffu);
  }
  return bytes;
}

CliTest::CliTest() {
  std::string pattern = (std::filesystem::temp_directory_path() / "vellum-cli-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("mkdtemp failed");
  }
  directory_ = pattern;
}

CliTest::~CliTest() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string CliTest::file(const std::string& name, const std::string& content) const {
  write_file(path(name), content);
  return path(name);
}

std::string CliTest::make_store(const Arguments& options) const {
  Arguments arguments{"init", path("store")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  must(arguments);
  return path("store");
}

std::string CliTest::make_store_with(const std::vector<std::string>& contents,
                                     const Arguments& options) const {
  const std::string store = make_store(options);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const std::string version = "v" + std::to_string(i + 1);
    must({"import", store, "main", file(version, contents[i]), "--snapshot", version, "-m",
          "message of " + version});
  }
  return store;
}

std::string CliTest::pack_of(const std::string& store) {
  std::vector<std::string> packs;
  for (const auto& entry : std::filesystem::directory_iterator(store + "/packs")) {
    packs.push_back(entry.path().string());
  }
  if (packs.size() != 1) {
    throw std::runtime_error("expected one pack, found " + std::to_string(packs.size()));
  }
  return packs[0];
}

Result must(const Arguments& arguments) {
  const Result result = run(arguments);
  if (result.status != 0) {
    ADD_FAILURE() << "vellum " << arguments[0] << ": status " << result.status << ", signal "
                  << result.signal << "\n"
                  << result.err;
  }
  return result;
}

// Once as text, once as JSON: the same status, a message that names the thing, and a code.
void expect_failure(const Arguments& arguments, int status, const std::string& code,
                    const std::string& named) {
  const Result text = run(arguments);
  EXPECT_EQ(text.status, status) << text.err;
  EXPECT_TRUE(text.err.starts_with("vellum: ")) << text.err;
  EXPECT_NE(text.err.find(named), std::string::npos) << named << " is not in: " << text.err;
  Arguments with_json{"--json"};
  with_json.insert(with_json.end(), arguments.begin(), arguments.end());
  const Result object = run(with_json);
  EXPECT_EQ(object.status, status) << object.err;
  EXPECT_EQ(object.err, text.err);
  if (arguments[0] == "cat") {
    return;  // prints bytes, never an object
  }
  const nlohmann::json error = object.json().at("error");
  EXPECT_EQ(error.at("code"), code);
  EXPECT_EQ(error.at("exit_status"), status);
  EXPECT_NE(error.at("message").get<std::string>().find(named), std::string::npos);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace vellum::cli_test
