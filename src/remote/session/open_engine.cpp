#include "remote/session/open_engine.hpp"

#include "remote/engine/directory_engine.hpp"
#include "remote/engine/url.hpp"
#include "remote/s3/s3_engine.hpp"

namespace vellum::remote {

std::unique_ptr<ObjectStore> open_object_store(base::Fs& fs, const std::string& url) {
  const RemoteUrl parsed = parse_remote_url(url);
  if (parsed.kind == RemoteUrl::Kind::directory) {
    return std::make_unique<DirectoryEngine>(fs, parsed.path);
  }
  return open_s3(parsed);
}

}  // namespace vellum::remote
