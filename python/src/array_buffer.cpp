// On CPython 3.11, implements a class's __buffer__ of 3.12 and later: Array loads its pages before
// its buffer is passed to a system call that cannot wait.
#include "bindings.hpp"

namespace vellum::python {

#if PY_VERSION_HEX < 0x030C0000
namespace {

getbufferproc numpys = nullptr;

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  PyObject* const done = PyObject_CallMethod(self, "_open_to_kernel", nullptr);
  if (done == nullptr) return -1;
  Py_DECREF(done);
  return numpys(self, view, flags);
}

}  // namespace

void bind_array_buffer(nb::module_& module) {
  module.def("prefetch_before_buffers", [](nb::type_object type) {
    PyBufferProcs* const slots = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_as_buffer;
    if (slots->bf_getbuffer == get_buffer) return;
    numpys = slots->bf_getbuffer;
    slots->bf_getbuffer = get_buffer;
  });
}
#else
void bind_array_buffer(nb::module_&) {}
#endif

}  // namespace vellum::python
