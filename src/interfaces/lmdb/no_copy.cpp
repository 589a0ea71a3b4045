// Replaces copy.cpp where LMDB's library is not found: environments are still recognized, but are
// copied only while their writer is stopped.
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "interfaces/lmdb/copy.hpp"

namespace vellum::lmdb {

void Copy::CloseEnv::operator()(MDB_env*) const {}

Copy::Copy(const std::string& path, const std::string&) : path_(path) {
  fail(Errc::unsupported,
       "{}: is LMDB's, and this vellum was built without LMDB's library; stop the writer, and take "
       "the file as it is with --stopped",
       path_);
}

Copy::~Copy() = default;

bool Copy::of_last_transaction() const { return true; }  // the constructor always throws
std::size_t Copy::read(void*, std::size_t) { return 0; }

}  // namespace vellum::lmdb
