// remote/materialize_clone.hpp: the packs of a lazy clone come here.
#pragma once

#include <vellum/remote.hpp>

#include "remote/session/session.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

// Each pack gets its name when it is whole; one that has a name stays as it is. Then the list of what
// is away goes. Errc::corrupted: a piece is damaged or missing;
// the packs that have come stay. REQUIRES: gc is kept out.
void materialize_packs(Session& session, PullReport& report, const ProgressFn& progress);

}  // namespace vellum::remote
