// Maps vellum::Error to the exception that vellum/errors.py defines for its code.
#include <cstring>
#include <vellum/error.hpp>

#include "bindings.hpp"

namespace vellum::python {

namespace {

// A message may contain names of files, which are bytes.
nb::object text_of(const char* message) {
  return nb::steal(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)),
                                        "backslashreplace"));
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const nb::object made = nb::module_::import_("vellum.errors")
                                  .attr("make")(errc_name(error.code()), text_of(error.what()));
      PyErr_SetObject(made.type().ptr(), made.ptr());
    }
  });
}

}  // namespace vellum::python
