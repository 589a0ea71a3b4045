// python/src/bindings.hpp: the parts of the extension module, each in one source file.
//
// The module exposes the C++ interface to Python, and no more: regions, stores, their reports. The
// interface for users (arrays, groups, transactions) is written in Python, in python/vellum.
//
// Calls that wait for a disk release the interpreter's lock (interpreter.hpp). No page fault needs
// it: a thread of the library loads pages (RegionOptions::fault_thread).
#pragma once

#include <nanobind/nanobind.h>
#include <vellum/report.hpp>
#include <vellum/store.hpp>

#include "interpreter.hpp"

namespace vellum::python {

namespace nb = nanobind;

using Unlocked = nb::call_guard<WithoutLock>;

void bind_interpreter(nb::module_& module);
void bind_errors(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_region(nb::module_& module);
void bind_extent(nb::module_& module);
void bind_store(nb::module_& module);
void bind_remotes(nb::module_& module, nb::class_<Store>& store);
void bind_replication(nb::module_& module);
void bind_array_buffer(nb::module_& module);

// A path or a URL: from Python, `str` or `bytes` as os.fsencode() takes them.
struct FileName {
  std::string bytes;
};

// Calls `callback(done, total, unit)` unless it is None, and ends the call on Ctrl-C.
ProgressFn progress_to(nb::object callback);

}  // namespace vellum::python

template <>
struct nanobind::detail::type_caster<vellum::python::FileName> {
  NB_TYPE_CASTER(vellum::python::FileName, const_name("str"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(source.ptr(), &encoded) == 0) {
      PyErr_Clear();
      return false;
    }
    value.bytes.assign(PyBytes_AsString(encoded), static_cast<std::size_t>(PyBytes_Size(encoded)));
    Py_DECREF(encoded);
    return true;
  }
  static handle from_cpp(const vellum::python::FileName& name, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeFSDefaultAndSize(name.bytes.data(),
                                            static_cast<Py_ssize_t>(name.bytes.size()));
  }
};
