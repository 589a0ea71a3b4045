// mount/serve.hpp: mounts a store and answers the kernel until it is unmounted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::mount {

// Unmounts what a killed `vellum mount` has left on the directory, if anything.
void clear_dead_mount(const std::string& directory);

// Returns when somebody unmounts the directory, or the process gets SIGINT, SIGTERM or SIGHUP.
// The `writable` branches can be written, and what was is committed before the call returns.
// `when_mounted` runs when the directory shows the store. Errc::io: it cannot be mounted; standard
// error says why. Errc::unsupported: built without FUSE. Of a writable branch: Errc::busy, when it
// has a writer; and the errors of its last commit.
void serve(const Store& store, const std::string& directory,
           const std::vector<std::string>& writable, const std::function<void()>& when_mounted);

}  // namespace vellum::mount
