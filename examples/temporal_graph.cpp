// A graph that grows with time, in persistent memory, with a snapshot per year or month.
//
//   temporal_graph [EDGES] [options]
//
// EDGES has one edge a line, "source target unix_time", separated by blanks, commas or semicolons,
// as in SNAP's temporal graphs; where there are four columns, the third (KONECT's weight) is
// skipped. Lines that start with # or % are comments. '-' is the standard input; .zst, .gz and .bz2
// files are unpacked by their programs. Without EDGES, the program generates an R-MAT graph.
//
// The graph is an ordinary hash map of vectors, a vellum::Heap puts it into a region, and
// Region::snapshot() keeps each period's state. At the end every snapshot is opened read-only,
// while the live graph is open, and queried, and the answers are compared with counts that were
// made while the edges were added. For comparison the program also keeps versions in the usual way:
// it copies the region to a file for each snapshot, and runs the same queries on some of the
// copies, mapped by mmap(2).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "edge_list.hpp"

namespace {

// ---- The graph in the region ----

struct Link {
  NodeId target;
  std::int64_t time;
};
using Graph = vellum::unordered_map<NodeId, vellum::vector<Link>>;  // by source

constexpr char kRoot[] = "graph";

struct Answers {
  std::uint64_t nodes = 0;  // that have edges
  std::uint64_t edges = 0;
  NodeId top = 0;  // the node with the most edges, the smallest of several
  std::uint64_t top_edges = 0;
  std::uint64_t reach = 0;  // nodes at most two steps from it

  bool operator==(const Answers&) const = default;
};

std::uint64_t two_step_reach(const Graph& graph, NodeId start) {
  std::unordered_set<NodeId> reached{start};
  std::vector<NodeId> from{start};
  for (int step = 0; step < 2; ++step) {
    std::vector<NodeId> next;
    for (const NodeId node : from) {
      const auto found = graph.find(node);
      if (found == graph.end()) {
        continue;  // a target only
      }
      for (const Link& link : found->second) {
        if (reached.insert(link.target).second) {
          next.push_back(link.target);
        }
      }
    }
    from = std::move(next);
  }
  return reached.size() - 1;
}

Answers ask(const Graph& graph) {
  Answers answers;
  answers.nodes = graph.size();
  for (const auto& [node, links] : graph) {
    answers.edges += links.size();
    if (links.size() > answers.top_edges ||
        (links.size() == answers.top_edges && node < answers.top)) {
      answers.top = node;
      answers.top_edges = links.size();
    }
  }
  answers.reach = two_step_reach(graph, answers.top);
  return answers;
}

// Counts the same things in ordinary memory while edges are added.
class Counter {
 public:
  void add(NodeId source) {
    const std::uint64_t edges = ++edges_of_[source];
    ++answers_.edges;
    if (edges > answers_.top_edges || (edges == answers_.top_edges && source < answers_.top)) {
      answers_.top = source;
      answers_.top_edges = edges;
    }
  }
  Answers answers() {
    answers_.nodes = edges_of_.size();
    return answers_;
  }

 private:
  std::unordered_map<NodeId, std::uint64_t> edges_of_;
  Answers answers_;
};

// ---- Small helpers ----

std::string readable_bytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

void show_progress_of_queries(std::size_t done, std::size_t of, double seconds) {
  static const bool on_terminal = isatty(STDERR_FILENO) == 1;
  if (on_terminal) {
    std::fprintf(stderr, "\r\033[Kopened and asked %zu of %zu snapshots, %.1f s", done, of,
                 seconds);
  }
}

// ---- The comparison: a full copy per snapshot ----

// Copies a region's pages that are not zero into a new file, makes it durable, and returns the
// space that it occupies on the medium.
std::uint64_t copy_to_file(const vellum::Region& region, const std::string& path) {
  constexpr std::size_t kPage = 4096, kLongestStretch = 1 << 20;
  static constexpr char kZeros[kPage] = {};
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    fail_with_errno(path);
  }
  const std::uint64_t size = region.size_bytes();
  const auto* data = region.array<const char>(size);
  // Reading a page also makes it present, so that write(2) can read it.
  const auto is_zero = [&](std::uint64_t at) { return std::memcmp(data + at, kZeros, kPage) == 0; };
  for (std::uint64_t at = 0; at < size;) {
    std::uint64_t end = at;
    while (end < size && end - at < kLongestStretch && !is_zero(end)) {
      end += kPage;
    }
    for (; at < end;) {
      const ssize_t written = pwrite(file, data + at, end - at, static_cast<off_t>(at));
      if (written <= 0) {
        fail_with_errno(path);
      }
      at += static_cast<std::uint64_t>(written);
    }
    while (at < size && is_zero(at)) {
      at += kPage;
    }
  }
  struct stat information = {};
  if (ftruncate(file, static_cast<off_t>(size)) != 0 || fdatasync(file) != 0 ||
      fstat(file, &information) != 0 || close(file) != 0) {
    fail_with_errno(path);
  }
  return static_cast<std::uint64_t>(information.st_blocks) * 512;
}

std::uint64_t count_full_copy_bytes(const vellum::Region& region) {
  constexpr std::size_t kPage = 4096;
  static constexpr char kZeros[kPage] = {};
  const auto* data = region.array<const char>(region.size_bytes());
  std::uint64_t bytes = 0;
  for (std::uint64_t at = 0; at < region.size_bytes(); at += kPage) {
    bytes += std::memcmp(data + at, kZeros, kPage) == 0 ? 0 : kPage;
  }
  return bytes;
}

// ---- The demonstration ----

struct Options {
  std::string edges;  // empty: R-MAT
  bool monthly = false;
  int scale = 17;
  std::uint64_t edge_factor = 16;
  std::uint64_t seed = 1;
  std::string store;  // empty: a directory of its own
  bool keep = false;
  bool json = false;
  enum { always, moderate, never } full_copies = moderate;
};

struct Row {
  std::string period;
  Answers expected;
  double ingest_s = 0, snapshot_s = 0, query_s = 0;
  std::uint64_t added_bytes = 0;  // by this snapshot
  std::uint64_t copy_bytes = 0;   // of a full copy
  double copy_s = -1;             // -1: it was only counted
  double copy_query_s = -1;       // -1: no copy was asked
};

struct Totals {
  double read_s = 0, ingest_s = 0, snapshot_s = 0, query_s = 0, copy_s = 0;
  std::uint64_t copies = 0;  // made for real
  std::uint64_t copy_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t wrong = 0;
  std::uint64_t copies_asked = 0;
  double copy_query_s = 0, same_query_s = 0;  // of the copies asked, and of the same snapshots
};

// Decides whether a full copy is made for real, and removes each after its measurement.
class FullCopies {
 public:
  FullCopies(const Options& options, const std::string& path)
      : wish_(options.full_copies), path_(path) {}

  void measure(const vellum::Region& region, Row& row) {
    row.copy_bytes = count_full_copy_bytes(region);
    if (!wanted(row.copy_bytes)) {
      return;
    }
    const auto start = Clock::now();
    row.copy_bytes = copy_to_file(region, path_);
    row.copy_s = seconds_since(start);
    std::filesystem::remove(path_);
    total_bytes_ += row.copy_bytes;
  }

 private:
  bool wanted(std::uint64_t bytes) const {
    constexpr std::uint64_t kModerate = 8ULL << 30;
    if (wish_ != Options::moderate) {
      return wish_ == Options::always;
    }
    const auto space = std::filesystem::space(std::filesystem::absolute(path_).parent_path());
    return total_bytes_ + bytes <= kModerate && bytes * 4 <= space.available;
  }

  decltype(Options::full_copies) wish_;
  std::string path_;
  std::uint64_t total_bytes_ = 0;
};

std::vector<Row> ingest(const vellum::Store& store, vellum::Region& region,
                        const std::vector<Edge>& edges, const Options& options,
                        FullCopies& full_copies) {
  vellum::Heap heap(region);  // grows the region by itself
  Graph& graph = heap.root<Graph>(kRoot);
  Counter counter;
  std::vector<Row> rows;
  for (std::size_t begin = 0; begin < edges.size();) {
    Row row;
    row.period = period_of(edges[begin].time, options.monthly);

    auto start = Clock::now();
    std::size_t end = begin;
    for (; end < edges.size(); ++end) {
      const Edge& edge = edges[end];
      if (edge.time != edges[begin].time && period_of(edge.time, options.monthly) != row.period) {
        break;
      }
      graph[edge.source].push_back({edge.target, edge.time});
      if (end % (1 << 16) == 0 && end > begin) {
        show_progress(row.period.c_str(), end - begin, seconds_since(start));
      }
    }
    row.ingest_s = seconds_since(start);

    start = Clock::now();
    region.snapshot(row.period);
    row.snapshot_s = seconds_since(start);
    row.added_bytes = store.version(row.period).bytes_added;

    clear_progress();
    for (std::size_t i = begin; i < end; ++i) {
      counter.add(edges[i].source);
    }
    row.expected = counter.answers();
    row.expected.reach = two_step_reach(graph, row.expected.top);
    full_copies.measure(region, row);
    rows.push_back(row);
    begin = end;
  }
  return rows;
}

// A read-only mapping of a file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat information = {};
    if (file < 0 || fstat(file, &information) != 0) {
      fail_with_errno(path);
    }
    bytes_ = static_cast<std::size_t>(information.st_size);
    data_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (data_ == MAP_FAILED) {
      fail_with_errno(path);
    }
  }
  ~MappedFile() { munmap(data_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const char* data() const { return static_cast<const char*>(data_); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Runs the same query on a full copy of the snapshot, which is in the page cache and is removed
// afterwards.
Answers ask_copy(const vellum::Region& region, const Graph* graph, const std::string& path,
                 Row& row) {
  copy_to_file(region, path);
  const auto start = Clock::now();
  const MappedFile copy(path);
  const char* const at = copy.data() + (reinterpret_cast<const char*>(graph) -
                                        static_cast<const char*>(region.data()));
  const Answers answers = ask(*reinterpret_cast<const Graph*>(at));  // its pointers are offsets
  row.copy_query_s = seconds_since(start);
  std::filesystem::remove(path);
  return answers;
}

// Opens the row's snapshot while the live graph is open and compares its answers. `copy`: the path
// for a copy of it; empty: no copy is queried.
bool check_snapshot(vellum::Store& store, Row& row, const std::string& copy) {
  const auto start = Clock::now();
  const vellum::Region region = store.open_version(row.period);
  const auto heap = vellum::Heap::open_read_only(region);
  const Graph* graph = heap.find<Graph>(kRoot);
  const Answers answers = graph == nullptr ? Answers() : ask(*graph);
  row.query_s = seconds_since(start);
  if (answers != row.expected) {
    std::fprintf(stderr, "%s: the snapshot answers %lu nodes, %lu edges; expected %lu, %lu\n",
                 row.period.c_str(), answers.nodes, answers.edges, row.expected.nodes,
                 row.expected.edges);
    return false;
  }
  return copy.empty() || ask_copy(region, graph, copy, row) == row.expected;
}

// Returns the number of wrong answers. Some snapshots, spread evenly, are queried as copies as
// well.
std::uint64_t check_snapshots(vellum::Store& store, std::vector<Row>& rows,
                              const std::string& copy) {
  constexpr std::size_t kCopies = 12;
  const std::size_t apart = std::max<std::size_t>(rows.size() / kCopies, 1);
  const auto start = Clock::now();
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    show_progress_of_queries(i, rows.size(), seconds_since(start));
    // The newest are the largest.
    const bool asked = (rows.size() - 1 - i) % apart == 0;
    wrong += check_snapshot(store, rows[i], asked ? copy : std::string()) ? 0 : 1;
  }
  clear_progress();
  return wrong;
}

Totals sum_up(const std::vector<Row>& rows) {
  Totals totals;
  for (const Row& row : rows) {
    totals.ingest_s += row.ingest_s;
    totals.snapshot_s += row.snapshot_s;
    totals.query_s += row.query_s;
    totals.copy_bytes += row.copy_bytes;
    if (row.copy_s >= 0) {
      totals.copy_s += row.copy_s;
      ++totals.copies;
    }
    if (row.copy_query_s >= 0) {
      totals.copy_query_s += row.copy_query_s;
      totals.same_query_s += row.query_s;
      ++totals.copies_asked;
    }
  }
  return totals;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

// At most 80 columns.
void print_table(const std::vector<Row>& rows) {
  std::printf("%-8s %9s %10s %10s %10s %10s %8s %7s\n", "", "", "full copy,", "", "this one", "",
              "", "");
  std::printf("%-8s %9s %10s %10s %10s %10s %8s %7s\n", "snapshot", "edges", "this one", "all",
              "added", "stored", "commit s", "query s");
  std::uint64_t copies = 0, stored = 0;
  for (const Row& row : rows) {
    copies += row.copy_bytes;
    stored += row.added_bytes;
    std::printf("%-8s %9lu %10s %10s %10s %10s %8.3f %7.3f\n", row.period.c_str(),
                row.expected.edges, readable_bytes(row.copy_bytes).c_str(),
                readable_bytes(copies).c_str(), readable_bytes(row.added_bytes).c_str(),
                readable_bytes(stored).c_str(), row.snapshot_s, row.query_s);
  }
}

void print_totals(const std::vector<Row>& rows, const Totals& totals) {
  std::printf("\n%zu versions in %s instead of %s: %.0f times less.\n", rows.size(),
              readable_bytes(totals.stored_bytes).c_str(),
              readable_bytes(totals.copy_bytes).c_str(),
              ratio(totals.copy_bytes, totals.stored_bytes));
  if (totals.wrong == 0) {
    std::printf("Each was opened beside the live graph and answered as counted.\n");
  } else {
    std::printf("%lu of them answered WRONG.\n", totals.wrong);
  }
  std::printf("Snapshots took %.2f s beside %.2f s of inserting edges", totals.snapshot_s,
              totals.ingest_s);
  if (totals.copies > 0) std::printf("; %lu full copies %.2f s", totals.copies, totals.copy_s);
  std::printf(".\n");
  if (totals.copies_asked > 0) {
    std::printf(
        "Opened and asked, an old version takes %.1f times as long as a mapped full copy.\n",
        totals.same_query_s / totals.copy_query_s);
  }
}

void print_json(const std::vector<Row>& rows, const Totals& totals) {
  std::printf("{\"snapshots\": [");
  const char* separator = "\n";
  for (const Row& row : rows) {
    std::printf(
        "%s  {\"period\": \"%s\", \"edges\": %lu, \"nodes\": %lu, \"top_node\": %lu, "
        "\"top_edges\": %lu, \"two_step_reach\": %lu, \"ingest_s\": %.6f, \"snapshot_s\": %.6f, "
        "\"added_bytes\": %lu, \"full_copy_bytes\": %lu, ",
        separator, row.period.c_str(), row.expected.edges, row.expected.nodes, row.expected.top,
        row.expected.top_edges, row.expected.reach, row.ingest_s, row.snapshot_s, row.added_bytes,
        row.copy_bytes);
    if (row.copy_s >= 0) {
      std::printf("\"full_copy_s\": %.6f, ", row.copy_s);
    }
    if (row.copy_query_s >= 0) {
      std::printf("\"full_copy_query_s\": %.6f, ", row.copy_query_s);
    }
    std::printf("\"query_s\": %.6f}", row.query_s);
    separator = ",\n";
  }
  std::printf(
      "\n],\n\"full_copy_bytes\": %lu, \"stored_bytes\": %lu, \"read_s\": %.6f, "
      "\"ingest_s\": %.6f, \"snapshot_s\": %.6f, \"full_copies_made\": %lu, "
      "\"full_copy_s\": %.6f, \"query_s\": %.6f, \"wrong\": %lu}\n",
      totals.copy_bytes, totals.stored_bytes, totals.read_s, totals.ingest_s, totals.snapshot_s,
      totals.copies, totals.copy_s, totals.query_s, totals.wrong);
}

// A directory of its own, in $TMPDIR, build/ or here, that is removed when the program ends.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(bool keep) : keep_(keep) {
    const char* const tmpdir = std::getenv("TMPDIR");
    const std::string parent = tmpdir != nullptr && *tmpdir != '\0'     ? tmpdir
                               : std::filesystem::is_directory("build") ? "build"
                                                                        : ".";
    path_ = parent + "/temporal-graph-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      fail_with_errno(path_);
    }
  }
  ~TemporaryDirectory() {
    if (keep_) {
      std::fprintf(stderr, "kept: %s\n", path_.c_str());
    } else {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  bool keep_;
  std::string path_;
};

// Removes a new store that is not complete in the end.
class NewStore {
 public:
  explicit NewStore(std::string path) : path_(std::move(path)) {}
  ~NewStore() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  NewStore(const NewStore&) = delete;
  NewStore& operator=(const NewStore&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

int usage() {
  std::fprintf(
      stderr,
      "usage: temporal_graph [EDGES] [options]\n"
      "  --period year|month   a snapshot for each (year)\n"
      "  --store DIR           a new store there, which stays (otherwise: a temporary one)\n"
      "  --keep                keep the temporary store\n"
      "  --full-copies         make a full copy for each snapshot, however large\n"
      "  --no-full-copies      only count what one would take\n"
      "                        (by default they are made up to 8 GiB, if there is room)\n"
      "  --scale N --edge-factor N --seed N\n"
      "                        without EDGES: 2^scale nodes (17), edges a node (16), seed (1)\n"
      "  --json                for programs\n");
  return 2;
}

// False: the arguments make no sense.
bool parse_arguments(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--keep") {
      options.keep = true;
    } else if (name == "--json") {
      options.json = true;
    } else if (name == "--full-copies") {
      options.full_copies = Options::always;
    } else if (name == "--no-full-copies") {
      options.full_copies = Options::never;
    } else if (name.substr(0, 2) != "--" && options.edges.empty()) {
      options.edges = name;
    } else if (i + 1 == argc) {
      return false;
    } else if (name == "--period") {
      const std::string_view period = argv[++i];
      options.monthly = period == "month";
      if (!options.monthly && period != "year") {
        return false;
      }
    } else if (name == "--store") {
      options.store = argv[++i];
    } else if (name == "--scale") {
      options.scale = std::atoi(argv[++i]);
    } else if (name == "--edge-factor") {
      options.edge_factor = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--seed") {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      return false;
    }
  }
  return options.scale >= 1 && options.scale <= 40 && options.edge_factor >= 1;
}

std::vector<Edge> load_edges(const Options& options) {
  if (options.edges.empty()) {
    std::fprintf(stderr, "making up an R-MAT graph: scale %d, edge factor %lu, seed %lu\n",
                 options.scale, options.edge_factor, options.seed);
    return make_up_edges(options.scale, options.edge_factor, options.seed);
  }
  return read_edges_by_time(options.edges);
}

// Returns the number of snapshots with wrong answers.
std::uint64_t run(const Options& options, const std::string& store_path) {
  const auto start = Clock::now();
  const std::vector<Edge> edges = load_edges(options);
  const double read_s = seconds_since(start);

  auto store = vellum::Store::create(store_path);
  NewStore made(store_path);
  auto region = store.create_region("graph", 64 << 20);
  FullCopies full_copies(options, store_path + ".full-copy");
  std::vector<Row> rows = ingest(store, region, edges, options, full_copies);

  const std::string copy = options.full_copies == Options::never ? "" : store_path + ".full-copy";
  const std::uint64_t wrong = check_snapshots(store, rows, copy);
  Totals totals = sum_up(rows);
  totals.read_s = read_s;
  totals.wrong = wrong;
  region.close();
  made.keep();
  totals.stored_bytes = store.stat().stored_bytes;
  if (options.json) {
    print_json(rows, totals);
  } else {
    print_table(rows);
    print_totals(rows, totals);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  if (!parse_arguments(argc, argv, options)) {
    return usage();
  }
  if (!options.store.empty()) {
    return run(options, options.store) == 0 ? 0 : 1;
  }
  const TemporaryDirectory directory(options.keep);
  return run(options, directory / "store") == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "temporal_graph: %s\n", error.what());
  return 1;
}
