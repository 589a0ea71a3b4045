// Replaces lmdb_copy.cpp where LMDB's library is not found: environments are still recognized, but
// are copied only while their writer is stopped.
#include <vellum/error.hpp>

#include "cli/lmdb_copy.hpp"

namespace vellum::cli {

void LmdbCopy::CloseEnv::operator()(MDB_env*) const {}

LmdbCopy::LmdbCopy(const std::string& path, const std::string&) : path_(path) {
  throw Error(Errc::unsupported,
              path_ +
                  ": is LMDB's, and this vellum was built without LMDB's library; stop the writer, "
                  "and take the file as it is with --stopped");
}

LmdbCopy::~LmdbCopy() = default;

std::size_t LmdbCopy::read(void*, std::size_t) { return 0; }  // no object is ever made

}  // namespace vellum::cli
