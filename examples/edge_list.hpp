// The graphs of the examples: files in the usual formats, or R-MAT (Chakrabarti et al., SDM 2004).
// This file does not use Vellum.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

using NodeId = std::uint64_t;

[[noreturn]] inline void fail_with_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A line on the terminal that the next one overwrites.
inline void show_progress(const char* what, std::uint64_t done, double seconds) {
  static const bool on_terminal = isatty(STDERR_FILENO) == 1;
  if (on_terminal) {
    std::fprintf(stderr, "\r\033[K%s: %.1f M edges, %.2f M edges/s", what,
                 static_cast<double>(done) / 1e6, static_cast<double>(done) / 1e6 / seconds);
  }
}
inline void clear_progress() {
  if (isatty(STDERR_FILENO) == 1) {
    std::fprintf(stderr, "\r\033[K");
  }
}

struct Edge {
  NodeId source;
  NodeId target;
  std::int64_t time;
};

// Lines of a file, of the standard input, or of the output of a program that unpacks it.
class LineReader {
 public:
  explicit LineReader(const std::string& path) {
    const std::string suffix = std::filesystem::path(path).extension();
    if (path == "-") {
      file_ = stdin;
    } else if (suffix == ".zst") {
      unpack("zstd", path);
    } else if (suffix == ".gz") {
      unpack("gzip", path);
    } else if (suffix == ".bz2") {
      unpack("bzip2", path);
    } else {
      file_ = std::fopen(path.c_str(), "r");
    }
    if (file_ == nullptr) {
      fail_with_errno(path);
    }
  }
  ~LineReader() {
    std::free(line_);
    std::fclose(file_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool next(std::string_view& line) {
    const ssize_t length = getline(&line_, &capacity_, file_);
    if (length >= 0) {
      line = {line_, static_cast<std::size_t>(length)};
      return true;
    }
    if (std::ferror(file_) != 0) {
      fail_with_errno("reading edges");
    }
    int status = 0;
    if (child_ > 0 && (waitpid(child_, &status, 0) != child_ || status != 0)) {
      throw std::runtime_error("unpacking the edges failed");
    }
    return false;
  }

 private:
  void unpack(const char* program, const std::string& path) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      fail_with_errno("pipe2");
    }
    child_ = fork();
    if (child_ < 0) {
      fail_with_errno("fork");
    }
    if (child_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execlp(program, program, "-dc", "--", path.c_str(), nullptr);
      std::perror(program);
      _exit(127);
    }
    close(ends[1]);
    file_ = fdopen(ends[0], "r");
  }

  std::FILE* file_ = nullptr;
  pid_t child_ = 0;
  char* line_ = nullptr;
  std::size_t capacity_ = 0;
};

// The number at the start of a column: a time may have a fraction, which is dropped.
template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && (end == text.data() + text.size() || *end == '.');
}

inline bool parse_edge(std::string_view line, Edge& edge) {
  constexpr std::string_view kSeparators = " \t,;\r\n";
  std::string_view columns[4];
  std::size_t count = 0;
  for (;;) {
    const std::size_t start = line.find_first_not_of(kSeparators);
    if (start == line.npos) {
      break;
    }
    if (count == std::size(columns)) {
      return false;
    }
    line.remove_prefix(start);
    columns[count] = line.substr(0, line.find_first_of(kSeparators));
    line.remove_prefix(columns[count++].size());
  }
  return count >= 3 && parse_number(columns[0], edge.source) &&
         parse_number(columns[1], edge.target) && parse_number(columns[count - 1], edge.time);
}

inline std::vector<Edge> read_edges(const std::string& path) {
  const auto start = Clock::now();
  std::vector<Edge> edges;
  LineReader reader(path);
  std::string_view line;
  for (std::uint64_t number = 1; reader.next(line); ++number) {
    if (line.find_first_not_of(" \t\r\n") == line.npos || line[0] == '#' || line[0] == '%') {
      continue;
    }
    Edge edge = {};
    if (!parse_edge(line, edge)) {
      throw std::runtime_error(path + ", line " + std::to_string(number) +
                               ": expected: source target [weight] unix_time");
    }
    edges.push_back(edge);
    if (edges.size() % (1 << 18) == 0) {
      show_progress("reading", edges.size(), seconds_since(start));
    }
  }
  clear_progress();
  return edges;
}

inline std::vector<Edge> read_edges_by_time(const std::string& path) {
  std::vector<Edge> edges = read_edges(path);
  const auto earlier = [](const Edge& a, const Edge& b) { return a.time < b.time; };
  if (!std::is_sorted(edges.begin(), edges.end(), earlier)) {
    std::fprintf(stderr, "the edges are not in order of time: sorting %zu in memory\n",
                 edges.size());
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::tie(a.time, a.source, a.target) < std::tie(b.time, b.source, b.target);
    });
  }
  return edges;
}

// "2016" or "2016-03".
inline std::string period_of(std::int64_t unix_time, bool monthly) {
  const std::time_t time = unix_time;
  std::tm date = {};
  if (gmtime_r(&time, &date) == nullptr) {
    throw std::runtime_error("no date: " + std::to_string(unix_time));
  }
  char text[64];
  std::strftime(text, sizeof text, monthly ? "%Y-%m" : "%Y", &date);
  return text;
}

// R-MAT: each edge falls into one quadrant of the adjacency matrix, again and again. The edges are
// spread evenly over ten years from 2010.
inline std::vector<Edge> make_up_edges(int scale, std::uint64_t edge_factor, std::uint64_t seed) {
  constexpr std::uint64_t kA = 57, kB = 19, kC = 19;  // per cent
  constexpr std::int64_t kStart = 1262304000, kSeconds = 10 * 365 * 86400;
  std::mt19937_64 random(seed);
  std::vector<Edge> edges(edge_factor << scale);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    Edge& edge = edges[i];
    edge.source = edge.target = 0;
    for (int level = 0; level < scale; ++level) {
      const std::uint64_t draw = random() % 100;
      edge.source = edge.source * 2 + (draw >= kA + kB ? 1 : 0);
      edge.target =
          edge.target * 2 + ((draw >= kA && draw < kA + kB) || draw >= kA + kB + kC ? 1 : 0);
    }
    edge.time =
        kStart + static_cast<std::int64_t>(static_cast<double>(kSeconds) * static_cast<double>(i) /
                                           static_cast<double>(edges.size()));
  }
  return edges;
}
