// Region and Transaction. Every call that waits for the disk runs without the interpreter's lock.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/mman.h>

#include <vellum/region.hpp>

#include "bindings.hpp"

namespace vellum::python {
namespace {

Advice advice_named(const std::string& name) {
  if (name == "normal") return Advice::normal;
  if (name == "sequential") return Advice::sequential;
  if (name == "random") return Advice::random;
  if (name == "will_need") return Advice::will_need;
  if (name == "dont_need") return Advice::dont_need;
  throw Error(Errc::invalid_argument, "unknown advice '" + name + "'");
}

// The guide describes what other Python threads may do meanwhile, and that a child of fork(2) does
// not have the region.
void bind_memory(nb::class_<Region>& region) {
  region
      .def_prop_ro("address",
                   [](const Region& r) { return reinterpret_cast<std::uintptr_t>(r.data()); })
      .def_prop_ro("size_bytes", &Region::size_bytes)
      .def_prop_ro("capacity_bytes", &Region::capacity_bytes)
      .def_prop_ro("writable", &Region::writable)
      .def_prop_ro("engine", [](const Region& r) { return engine_name(r.engine()); })
      .def_prop_ro("serves_system_calls", &Region::serves_system_calls)
      .def_prop_ro("name", &Region::name)
      .def_prop_ro("sequence", &Region::sequence)
      .def_prop_ro("resident_bytes", [](const Region& r) { return r.memory_use().resident_bytes; })
      .def("grow", &Region::grow, nb::arg("size_bytes"), Unlocked())
      .def(
          "prefetch",
          [](const Region& r, std::uint64_t offset, std::uint64_t length) {
            r.prefetch({offset, length});
          },
          nb::arg("offset_bytes"), nb::arg("length_bytes"), Unlocked())
      .def(
          "prefetch_ranges",
          [](const Region& r, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
            std::vector<ByteRange> out;
            for (const auto& [offset, length] : ranges) out.push_back({offset, length});
            r.prefetch(out);
          },
          nb::arg("ranges"), Unlocked())
      // With engine sigsegv, pages of a branch stay writable until the next commit.
      .def(
          "open_to_system_calls",
          [](const Region& r, std::uint64_t offset, std::uint64_t length) {
            r.pin({offset, length}).release();
          },
          nb::arg("offset_bytes"), nb::arg("length_bytes"), Unlocked())
      .def(
          "advise",
          [](const Region& r, std::uint64_t offset, std::uint64_t length,
             const std::string& advice) { r.advise({offset, length}, advice_named(advice)); },
          nb::arg("offset_bytes"), nb::arg("length_bytes"), nb::arg("advice"), Unlocked())
      .def(
          "zero",
          [](Region& r, std::uint64_t offset, std::uint64_t length) { r.zero({offset, length}); },
          nb::arg("offset_bytes"), nb::arg("length_bytes"), Unlocked());
}

// Reserves a range of addresses for OpenOptions::reserved_address. The range must be free now.
void reserve(std::uintptr_t address, std::uint64_t length_bytes) {
  void* const wanted = reinterpret_cast<void*>(address);
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const got = mmap(wanted, length_bytes, PROT_NONE, flags, -1, 0);
  if (got == wanted) return;
  if (got != MAP_FAILED) munmap(got, length_bytes);
  throw Error(Errc::out_of_memory, "the addresses of a region are taken");
}

// Maps private zeros over pages of a region, which children do not inherit. REQUIRES: they are
// within its capacity.
void cover(std::uintptr_t address, std::uint64_t length_bytes) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  void* const at = reinterpret_cast<void*>(address);
  if (mmap(at, length_bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != at) {
    throw Error(Errc::out_of_memory, "not enough memory for the parent's uncommitted pages");
  }
  madvise(at, length_bytes, MADV_DONTFORK);
}

}  // namespace

void bind_region(nb::module_& module) {
  nb::class_<Transaction>(module, "Transaction")
      .def_prop_ro("is_open", &Transaction::is_open)
      .def(
          "commit",
          [](Transaction& t, const std::string& message) {
            return interruptible([&] { return t.commit(message); });
          },
          nb::arg("message") = "")
      .def("rollback", &Transaction::rollback, Unlocked());

  module.def("reserve", &reserve, nb::arg("address"), nb::arg("length_bytes"));
  module.def("cover", &cover, nb::arg("address"), nb::arg("length_bytes"));

  nb::class_<Region> region(module, "Region");
  bind_memory(region);
  region
      .def(
          "commit",
          [](Region& r, const std::string& message) {
            return interruptible([&] { return r.commit(message); });
          },
          nb::arg("message") = "")
      .def(
          "snapshot",
          [](Region& r, const std::string& name, const std::string& message) {
            return interruptible([&] { return r.snapshot(name, message); });
          },
          nb::arg("name"), nb::arg("message") = "")
      .def("rollback", &Region::rollback, Unlocked())
      .def("begin", &Region::begin, Unlocked())
      .def("close", &Region::close, Unlocked());
}

}  // namespace vellum::python
