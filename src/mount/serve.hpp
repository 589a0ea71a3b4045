// mount/serve.hpp: mounts a store and answers the kernel until it is unmounted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::mount {

// Unmounts the dead mount of a killed `vellum mount`, if there is one on the directory.
void clear_dead_mount(const std::string& directory);

// Returns when the directory is unmounted, or the process gets SIGINT, SIGTERM or SIGHUP. The
// `writable` branches can be written, and their writes are committed before the call returns.
// `when_mounted` runs when the directory shows the store. Errc::io: it cannot be mounted; standard
// error has the reason. Errc::unsupported: built without FUSE. For a writable branch: Errc::busy,
// if it has a writer; and the errors of its last commit.
void serve(const Store& store, const std::string& directory,
           const std::vector<std::string>& writable, const std::function<void()>& when_mounted);

}  // namespace vellum::mount
