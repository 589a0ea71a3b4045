#include <utility>

#include "bindings.hpp"

namespace vellum::python {

ProgressFn progress_to(nb::object callback) {
  return [callback = std::move(callback)](const Progress& progress) {
    const WithLock lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!callback.is_none()) callback(progress.done, progress.total, progress.unit);
  };
}

}  // namespace vellum::python
