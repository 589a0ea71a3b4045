// Store: names, maintenance, and opening regions.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vellum/retention.hpp>
#include <vellum/store.hpp>

#include "bindings.hpp"
#include "region/api/version_names.hpp"
#include "remote/engine/url.hpp"

namespace vellum::python {
namespace {

// Whether a text is the URL of a remote, and not a path. Errc::invalid_argument: it is another URL.
bool is_remote_url(const FileName& text) {
  if (text.bytes.find("://") != std::string::npos) remote::parse_remote_url(text.bytes);
  return remote::is_remote_url(text.bytes);
}

Engine engine_named(const std::string& name) {
  for (const Engine engine : {Engine::automatic, Engine::uffd, Engine::sigsegv, Engine::mapped}) {
    if (name == engine_name(engine)) return engine;
  }
  throw Error(Errc::invalid_argument, "unknown engine '" + name + "'");
}

// How Python opens regions. A thread handles faults: other libraries of the process install their
// own handlers of SIGBUS and SIGSEGV.
struct OpenOptions {
  std::string engine = "automatic";
  std::uint64_t capacity_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t reserved_address = 0;  // not 0: over the caller's reservation of capacity_bytes
  bool working_set = false;
  bool share = false;
  bool huge_pages = false;

  RegionOptions to_region_options() const {
    RegionOptions options;
    options.engine = engine_named(engine);
    options.fault_thread = true;
    options.capacity_bytes = capacity_bytes;
    options.memory_limit_bytes = memory_limit_bytes;
    options.working_set = working_set;
    options.share = share;
    options.huge_pages = huge_pages;
    options.over_reservation = reserved_address != 0;
    options.base_address = reserved_address;
    return options;
  }
};

void bind_options(nb::module_& module) {
  nb::class_<OpenOptions>(module, "OpenOptions")
      .def(nb::init<>())
      .def_rw("engine", &OpenOptions::engine)
      .def_rw("capacity_bytes", &OpenOptions::capacity_bytes)
      .def_rw("memory_limit_bytes", &OpenOptions::memory_limit_bytes)
      .def_rw("reserved_address", &OpenOptions::reserved_address)
      .def_rw("working_set", &OpenOptions::working_set)
      .def_rw("share", &OpenOptions::share)
      .def_rw("huge_pages", &OpenOptions::huge_pages);
}

// The ranges as pairs of 64-bit words, offset and length: there may be millions of them.
nb::bytes diff(const Store& store, const std::string& a, const std::string& b) {
  std::vector<std::uint64_t> words;
  {
    const WithoutLock unlocked;
    store.diff(a, b, [&](const ByteRange& range) {
      words.push_back(range.offset_bytes);
      words.push_back(range.length_bytes);
    });
  }
  return nb::bytes(words.data(), words.size() * sizeof(std::uint64_t));
}

nb::bytes read(const Store& store, const std::string& name, std::uint64_t offset,
               std::uint64_t length) {
  std::vector<char> content(length);
  {
    const WithoutLock unlocked;
    store.read(name, offset, content.data(), content.size());
  }
  return nb::bytes(content.data(), content.size());
}

// The snapshots that no rule keeps, oldest last.
std::vector<std::string> not_kept(const Store& store, std::uint32_t last, std::uint32_t daily,
                                  std::uint32_t weekly, std::uint32_t monthly,
                                  std::uint32_t yearly) {
  std::vector<std::string> names;
  for (const auto& decision :
       decide_retention(store.versions(), {last, daily, weekly, monthly, yearly})) {
    if (decision.kept_by.empty()) names.push_back(decision.version.name);
  }
  return names;
}

void bind_regions(nb::class_<Store>& store) {
  store
      .def(
          "create_region",
          [](Store& s, const std::string& branch, std::uint64_t bytes, const OpenOptions& o) {
            return s.create_region(branch, bytes, o.to_region_options());
          },
          nb::arg("branch"), nb::arg("size_bytes"), nb::arg("options"), Unlocked())
      .def(
          "open_region",
          [](Store& s, const std::string& branch, const OpenOptions& o) {
            return s.open_region(branch, o.to_region_options());
          },
          nb::arg("branch"), nb::arg("options"), Unlocked())
      .def(
          "open_version",
          [](Store& s, const std::string& name, const OpenOptions& o) {
            return s.open_version(name, o.to_region_options());
          },
          nb::arg("name"), nb::arg("options"), Unlocked());
}

void bind_names(nb::class_<Store>& store) {
  store.def("versions", &Store::versions, Unlocked())
      .def("version", &Store::version, nb::arg("name"), Unlocked())
      .def(
          "commits",
          [](const Store& s, const std::string& branch) { return api::commits_of(s, branch); },
          nb::arg("branch"), Unlocked())
      .def("contains", &Store::contains, nb::arg("name"), Unlocked())
      .def(
          "create_branch",
          [](Store& s, const std::string& name, const std::string& from) {
            s.create_branch(name, from);
          },
          nb::arg("name"), nb::arg("from_version"), Unlocked())
      .def("create_snapshot", &Store::create_snapshot, nb::arg("name"), nb::arg("from_version"),
           nb::arg("message") = "", Unlocked())
      .def("remove_snapshot", &Store::remove_snapshot, nb::arg("name"), Unlocked())
      .def("remove_branch", &Store::remove_branch, nb::arg("name"), Unlocked())
      .def("not_kept", &not_kept, nb::arg("last"), nb::arg("daily"), nb::arg("weekly"),
           nb::arg("monthly"), nb::arg("yearly"), Unlocked());
}

void bind_upkeep(nb::class_<Store>& store) {
  store.def("stat", &Store::stat, Unlocked())
      .def("diff", &diff, nb::arg("a"), nb::arg("b"))
      .def("read", &read, nb::arg("name"), nb::arg("offset_bytes"), nb::arg("length_bytes"))
      .def(
          "collect_garbage",
          [](Store& s, bool dry_run, int recompress_level, nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const WithoutLock unlocked;
            return s.collect_garbage({dry_run, recompress_level}, report);
          },
          nb::arg("dry_run"), nb::arg("recompress_level"), nb::arg("progress").none())
      .def(
          "verify",
          [](const Store& s, bool read_data, nb::object progress) {
            const ProgressFn report = progress_to(std::move(progress));
            const WithoutLock unlocked;
            return s.verify({read_data}, report);
          },
          nb::arg("read_data"), nb::arg("progress").none());
}

}  // namespace

void bind_store(nb::module_& module) {
  bind_options(module);
  module.def("is_remote_url", &is_remote_url, nb::arg("text"));
  nb::class_<Store> store(module, "Store");
  store
      .def_static(
          "open", [](const FileName& path) { return Store::open(path.bytes); }, nb::arg("path"),
          Unlocked())
      .def_static(
          "open_or_create", [](const FileName& path) { return Store::open_or_create(path.bytes); },
          nb::arg("path"), Unlocked())
      .def_prop_ro("path", [](const Store& s) { return FileName{s.path()}; })
      .def_prop_ro("id", &Store::id);
  bind_regions(store);
  bind_names(store);
  bind_upkeep(store);
  bind_remotes(module, store);
}

}  // namespace vellum::python
