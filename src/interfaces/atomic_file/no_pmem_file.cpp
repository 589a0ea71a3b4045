// Replaces pmem_file.cpp where libpmem is missing: no file is in persistent memory then, and one
// on a DAX file system is flushed like any other.
#include "interfaces/atomic_file/medium.hpp"

namespace vellum::atomic_file {

std::unique_ptr<MediumFile> pmem_file(base::File&, bool) { return nullptr; }

}  // namespace vellum::atomic_file
