// What versions contain: differences, plain files and streams. See vellum.h.
#include <cstdint>

#include "base/fail.hpp"
#include "interfaces/c/boundary.hpp"

using vellum::Errc;
using namespace vellum::capi;

namespace {

vellum_diff_totals to_c(const vellum::DiffTotals& totals) {
  return {sizeof(vellum_diff_totals), totals.pages_compared, totals.pages_different,
          totals.bytes_different, totals.ranges};
}

vellum::ReadFn read_of(vellum_read_fn read, void* context) {
  return [read, context](void* to, std::size_t capacity_bytes) {
    const std::int64_t got = read(to, capacity_bytes, context);
    if (got < 0) throw Stopped();
    if (static_cast<std::uint64_t>(got) > capacity_bytes) {
      fail(Errc::invalid_argument, "read returns more bytes than its buffer holds");
    }
    return static_cast<std::size_t>(got);
  };
}

}  // namespace

extern "C" {

int vellum_diff(const vellum_store* store, const char* a, const char* b, vellum_range_fn visit,
                void* context, vellum_diff_totals* totals) {
  return guarded([&] {
    require(a, "a");
    require(b, "b");
    require_struct(totals);
    const auto found = store_of(store).diff(a, b, [&](const vellum::ByteRange& range) {
      if (visit == nullptr) return;
      const vellum_byte_range given{range.offset_bytes, range.length_bytes};
      if (visit(&given, context) != 0) throw Stopped();
    });
    fill_struct(totals, to_c(found));
  });
}

int vellum_diff_bytes(const vellum_store* store, const char* a, const char* b,
                      uint64_t granularity_bytes, vellum_diff_range_fn visit, void* context,
                      vellum_diff_totals* totals) {
  return guarded([&] {
    require(a, "a");
    require(b, "b");
    require(visit, "visit");
    require_struct(totals);
    const auto found =
        store_of(store).diff(a, b, {granularity_bytes}, [&](const vellum::DiffRange& range) {
          const vellum_diff_range given{
              {range.range.offset_bytes, range.range.length_bytes}, range.a, range.b};
          if (visit(&given, context) != 0) throw Stopped();
        });
    fill_struct(totals, to_c(found));
  });
}

int vellum_export(const vellum_store* store, const char* name, const char* file,
                  vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require(name, "the version's name");
    require(file, "file");
    store_of(store).export_file(name, file, progress_of(progress, context));
  });
}

int vellum_import(vellum_store* store, const char* branch, const char* file, const char* message,
                  vellum_commit_report* report, vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require(branch, "the branch's name");
    require(file, "file");
    require_struct(report);
    fill_struct(report, to_c(store_of(store).import_file(branch, file, or_empty(message),
                                                         progress_of(progress, context))));
  });
}

int vellum_import_stream(vellum_store* store, const char* branch, vellum_read_fn read,
                         uint64_t expected_bytes, const char* message, vellum_commit_report* report,
                         vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require(branch, "the branch's name");
    require(read, "read");
    require_struct(report);
    fill_struct(report, to_c(store_of(store).import_stream(branch, read_of(read, context),
                                                           expected_bytes, or_empty(message),
                                                           progress_of(progress, context))));
  });
}

int vellum_import_version(vellum_store* store, const char* branch, const vellum_store* from,
                          const char* name, const char* message, vellum_commit_report* report,
                          vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require(branch, "the branch's name");
    require(from, "from");
    require(name, "the version's name");
    require_struct(report);
    fill_struct(report,
                to_c(store_of(store).import_version(branch, from->store, name, or_empty(message),
                                                    progress_of(progress, context))));
  });
}

}  // extern "C"
