#include <vellum/version.hpp>

#ifdef VELLUM_OWN_OPENSSL
#include <openssl/crypto.h>
#endif

#include "bindings.hpp"

NB_MODULE(_core, module) {
  // Regions that a program leaves open end with the process, as in C++.
  nanobind::set_leak_warnings(false);
#ifdef VELLUM_OWN_OPENSSL
  // The machine's openssl.cnf is for the machine's OpenSSL. It may name modules that only fit that
  // one.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
#endif
  module.doc() =
      "The C++ library, as vellum's Python code calls it. Not an interface for programs.";
  module.def("library_version", &vellum::version);
  vellum::python::bind_interpreter(module);
  vellum::python::bind_errors(module);
  vellum::python::bind_reports(module);
  vellum::python::bind_region(module);
  vellum::python::bind_extent(module);
  vellum::python::bind_store(module);
  vellum::python::bind_replication(module);
  vellum::python::bind_array_buffer(module);
}
