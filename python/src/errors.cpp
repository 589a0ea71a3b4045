// vellum::Error becomes the exception that vellum/errors.py has for its code.
#include <vellum/error.hpp>

#include "bindings.hpp"

namespace vellum::python {

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const nb::object made = nb::module_::import_("vellum.errors")
                                  .attr("make")(errc_name(error.code()), nb::str(error.what()));
      PyErr_SetObject(made.type().ptr(), made.ptr());
    }
  });
}

}  // namespace vellum::python
