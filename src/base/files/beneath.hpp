// base/files/beneath.hpp: a file system that does not follow links below a directory.
#pragma once

#include <memory>
#include <string>

namespace vellum::base {

class Fs;

// The same file system without following links in paths below the directory `root`. A user who may
// write there cannot redirect accesses to outside of it. Errc::corrupted: a path has a link, which
// the message names; invalid_argument: a path has `..`. Works for posix_fs() and for results of
// this function. Other file systems have no links, or forward to posix_fs() in a test: the result
// is then `fs` itself, which must outlive it.
std::shared_ptr<Fs> beneath(Fs& fs, const std::string& root);

}  // namespace vellum::base
