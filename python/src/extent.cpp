// Extent: a range of a region's memory, the base of numpy arrays.
//
// It owns a reference to its owner: memory stays mapped while any of its arrays lives. Whether it
// has arrays is known, but not their number: Python's code keeps a weak reference to each extent
// that it returns.
#include <nanobind/stl/string.h>

#include <vellum/region.hpp>

#include "bindings.hpp"

namespace vellum::python {
namespace {

class Extent {
 public:
  Extent(nb::object owner, const Region& region, std::uint64_t offset_bytes,
         std::uint64_t length_bytes)
      : owner_(std::move(owner)), length_bytes_(length_bytes), read_only_(!region.writable()) {
    const std::uint64_t size = region.size_bytes();
    if (offset_bytes > size || length_bytes > size - offset_bytes) {
      throw Error(Errc::invalid_argument, "an extent reaches past the region's end");
    }
    begin_ = static_cast<std::byte*>(region.data()) + offset_bytes;
  }

  static int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
    const auto& extent = *nb::inst_ptr<Extent>(nb::handle(self));
    return PyBuffer_FillInfo(view, self, extent.begin_,
                             static_cast<Py_ssize_t>(extent.length_bytes_),
                             extent.read_only_ ? 1 : 0, flags);
  }

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(begin_); }
  std::uint64_t length_bytes() const { return length_bytes_; }
  nb::object owner() const { return owner_; }

 private:
  nb::object owner_;
  std::byte* begin_ = nullptr;
  std::uint64_t length_bytes_ = 0;
  bool read_only_ = true;
};

PyType_Slot slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&Extent::get_buffer)},
    {0, nullptr},
};

}  // namespace

void bind_extent(nb::module_& module) {
  nb::class_<Extent>(module, "Extent", nb::type_slots(slots), nb::is_weak_referenceable(),
                     "A range of a region's memory; exports a buffer.")
      .def(nb::init<nb::object, const Region&, std::uint64_t, std::uint64_t>(),
           nb::arg("owner").none(), nb::arg("region"), nb::arg("offset_bytes"),
           nb::arg("length_bytes"))
      .def_prop_ro("address", &Extent::address)
      .def_prop_ro("owner", &Extent::owner)
      .def("__len__", &Extent::length_bytes);
}

}  // namespace vellum::python
