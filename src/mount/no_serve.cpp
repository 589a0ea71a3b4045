// mount/no_serve.cpp: for builds without FUSE.
#include "base/fail.hpp"
#include "mount/serve.hpp"

namespace vellum::mount {

void clear_dead_mount(const std::string&) {}

void serve(const Store&, const std::string&, const std::vector<std::string>&,
           const std::function<void()>&) {
  fail(Errc::unsupported,
       "this vellum was built without FUSE (libfuse3-dev), which mounting needs");
}

}  // namespace vellum::mount
