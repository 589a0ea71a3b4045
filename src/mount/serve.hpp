// mount/serve.hpp: mounts a store and answers the kernel until it is unmounted.
#pragma once

#include <functional>
#include <string>

#include <vellum/store.hpp>

namespace vellum::mount {

// Unmounts what a killed `vellum mount` has left on the directory, if anything.
void clear_dead_mount(const std::string& directory);

// Returns when somebody unmounts the directory, or the process gets SIGINT, SIGTERM or SIGHUP.
// `when_mounted` runs when the directory shows the store. Errc::io: it cannot be mounted; standard
// error says why. Errc::unsupported: built without FUSE.
void serve(const Store& store, const std::string& directory,
           const std::function<void()>& when_mounted);

}  // namespace vellum::mount
