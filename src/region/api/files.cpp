// Versions as plain files, and plain files as versions: parts of the C++ interface of a store.
#include <vellum/store.hpp>

#include "base/files/new_file.hpp"
#include "region/api/import.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/stream/content.hpp"
#include "store/stream/export.hpp"

namespace vellum {
namespace {

std::shared_ptr<store::PageSource> open_source(store::StoreDirectory& core,
                                               const std::string& name) {
  auto kept = store::resolve_kept(core, name);
  auto source = store::PageSource::open(core, kept.version.version, std::move(kept.version.commits),
                                        kept.version.label);
  source->keep(std::move(kept.version_pin));
  return source;
}

}  // namespace

void Store::export_file(const std::string& name, const std::string& file,
                        const ProgressFn& progress) const {
  base::require_free(impl_->core->fs(), file);
  const auto source = open_source(*impl_->core, resolve(name));
  base::NewFile out(impl_->core->fs(), file);
  store::export_content(*source, out.file(), {}, progress);
  out.publish();
}

CommitReport Store::import_file(const std::string& branch, const std::string& file,
                                const std::string& message, const ProgressFn& progress) {
  const auto in = impl_->core->fs().open(file, base::OpenMode::read_only);
  const auto content = store::content_of(*in);
  return api::import_content(*this, branch, *content, message, progress);
}

CommitReport Store::import_stream(const std::string& branch, const ReadFn& read,
                                  std::uint64_t expected_bytes, const std::string& message,
                                  const ProgressFn& progress) {
  store::StreamContent content(read, expected_bytes);
  return api::import_content(*this, branch, content, message, progress);
}

CommitReport Store::import_version(const std::string& branch, const Store& from,
                                   const std::string& name, const std::string& message,
                                   const ProgressFn& progress) {
  store::VersionContent content(open_source(*from.impl_->core, from.resolve(name)));
  return api::import_content(*this, branch, content, message, progress);
}

}  // namespace vellum
