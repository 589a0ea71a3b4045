// base/files/beneath.hpp: a directory out of which no link leads.
#pragma once

#include <memory>
#include <string>

namespace vellum::base {

class Fs;

// The same file system, where no link in a path below the directory `root` is followed: whoever may
// write there cannot lead anybody out of it. Errc::corrupted names such a link; invalid_argument: a
// path has `..`. Of posix_fs() and what this made of it. Others have no links, or forward to it in
// a test: they are returned as they are, and outlive what is returned.
std::shared_ptr<Fs> beneath(Fs& fs, const std::string& root);

}  // namespace vellum::base
