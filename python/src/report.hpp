// python/src/report.hpp: a C++ struct in Python: read-only attributes with a docstring each, and a
// repr that shows them.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "bindings.hpp"

namespace vellum::python {

template <typename T>
class Report {
 public:
  Report(nb::module_& module, const char* name, const char* meaning)
      : class_(module, name, meaning) {
    class_.def("__repr__", &repr);
    class_.def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[object, ...]"));
  }

  // A member, or a function of the struct.
  template <typename Getter>
  Report& field(const char* name, Getter getter, const char* meaning) {
    if constexpr (std::is_member_object_pointer_v<Getter>) {
      class_.def_ro(name, getter, meaning);
    } else {
      class_.def_prop_ro(name, getter, meaning);
    }
    names.push_back(name);
    return *this;
  }

 private:
  static std::string repr(nb::handle self) {
    std::string out = "<" + nb::cast<std::string>(self.type().attr("__name__"));
    const char* before = " ";
    for (const char* const name : names) {
      out += before + std::string(name) + "=" + nb::cast<std::string>(nb::repr(self.attr(name)));
      before = ", ";
    }
    return out + ">";
  }

  // It is pickled and copied with the same names, without the class.
  static nb::object reduce(nb::handle self) {
    nb::dict fields;
    for (const char* const name : names) fields[name] = self.attr(name);
    return nb::make_tuple(nb::module_::import_("types").attr("SimpleNamespace"), nb::tuple(),
                          fields);
  }

  static inline std::vector<const char*> names;
  nb::class_<T> class_;
};

}  // namespace vellum::python
