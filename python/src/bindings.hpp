// python/src/bindings.hpp: the parts of the extension module, each of one source file.
//
// The module is the C++ interface as Python can call it, and no more: regions, stores, their reports.
// What its users see (arrays, groups, transactions) is written in Python, in python/vellum.
//
// Calls that wait for a disk release the interpreter's lock. No page fault needs it: a thread of the
// library brings pages in (RegionOptions::fault_thread).
#pragma once

#include <nanobind/nanobind.h>
#include <vellum/report.hpp>
#include <vellum/store.hpp>

namespace vellum::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_region(nb::module_& module);
void bind_extent(nb::module_& module);
void bind_store(nb::module_& module);
void bind_remotes(nb::module_& module, nb::class_<Store>& store);
void bind_replication(nb::module_& module);
void bind_array_buffer(nb::module_& module);

// Calls `callback(done, total, unit)` unless it is None, and ends the call on Ctrl-C.
ProgressFn progress_to(nb::object callback);

}  // namespace vellum::python
