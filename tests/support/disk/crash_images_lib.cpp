#include "support/disk/crash_images_lib.hpp"

#include <unordered_set>
#include <utility>

namespace vellum::sim {

namespace {

using OpKind = Op::OpKind;

// All but one, and prefixes, are as frequent as the other subsets: they are realistic.
std::vector<bool> choose_atoms(std::size_t n, std::size_t way, std::mt19937_64& random) {
  const std::size_t at = random() % n;
  const std::uint64_t chance = 1 + random() % 15;
  std::vector<bool> chosen(n);
  switch (way % 4) {
    case 0:
      for (std::size_t i = 0; i < n; ++i) chosen[i] = i != at;
      break;
    case 1:
      for (std::size_t i = 0; i < n; ++i) chosen[i] = i < at;
      break;
    default:
      for (std::size_t i = 0; i < n; ++i) chosen[i] = random() % 16 < chance;
  }
  return chosen;
}

}  // namespace

CrashImages::CrashImages(const SimFs& fs, const Effort& effort, std::uint64_t seed)
    : log_(fs.log()), effort_(effort), random_(seed), medium_(fs.start(), random_) {}

void CrashImages::for_each(const Visit& visit) {
  visit(medium_.durable(), low_, high_);
  for (std::size_t i = 0; i < log_.size(); ++i) step(i, visit);
}

void CrashImages::step(std::size_t position, const Visit& visit) {
  const Op& op = log_[position];
  if (op.kind == OpKind::states) {
    const std::size_t low = std::exchange(low_, op.low);
    high_ = op.high;
    // Fewer states are allowed now: an image that was right at the last step may be wrong.
    if (low_ != low) visit_all(0, visit);
    return;
  }
  medium_.take(op, position);
  switch (op.kind) {
    case OpKind::new_inode:
    case OpKind::sync_data:
    case OpKind::sync_directory:
      return;  // nothing new is possible
    case OpKind::lost_sync:
      return visit_all(0, visit);
    default:
      return visit_all(position, visit);
  }
}

// `newest`: only subsets that contain this call or a later one.
void CrashImages::visit_all(std::size_t newest, const Visit& visit) {
  ++crash_points_;
  visit_subsets(medium_.pending(), newest, effort_.exhaustive, effort_.samples, visit);
  std::size_t before = medium_.pending().size();
  for (const std::uint64_t piece_bytes : {kChunkBytes, kSectorBytes}) {
    const auto atoms = medium_.torn(piece_bytes);
    if (atoms.size() == before) continue;  // nothing to tear, or nothing further
    before = atoms.size();
    visit_subsets(atoms, newest, effort_.torn_exhaustive, effort_.torn_samples, visit);
  }
}

void CrashImages::visit_subsets(const std::vector<Atom>& atoms, std::size_t newest,
                                std::size_t exhaustive, std::size_t samples, const Visit& visit) {
  if (atoms.size() > exhaustive) return visit_samples(atoms, newest, samples, visit);
  std::uint64_t must = 0;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (atoms[i].op >= newest) must |= 1ULL << i;
  }
  for (std::uint64_t mask = 0; mask < 1ULL << atoms.size(); ++mask) {
    if (newest != 0 && (mask & must) == 0) continue;
    visit(medium_.with(atoms, [mask](std::size_t i) { return (mask >> i & 1) != 0; }), low_, high_);
  }
}

void CrashImages::visit_samples(const std::vector<Atom>& atoms, std::size_t newest,
                                std::size_t samples, const Visit& visit) {
  visit(medium_.with(atoms, [](std::size_t) { return true; }), low_, high_);
  for (std::size_t s = 1; s < samples; ++s) {
    const auto chosen = choose_atoms(atoms.size(), s, random_);
    bool fresh = newest == 0;
    for (std::size_t i = 0; i < atoms.size(); ++i) fresh |= chosen[i] && atoms[i].op >= newest;
    if (fresh) visit(medium_.with(atoms, [&](std::size_t i) { return chosen[i]; }), low_, high_);
  }
}

void each_image_once(const SimFs& fs, std::size_t low, const Effort& effort,
                     const std::function<void(const Disk&)>& visit) {
  std::unordered_set<std::uint64_t> seen;
  CrashImages(fs, effort, 1).for_each([&](const Disk& image, std::size_t at, std::size_t) {
    if (at == low && seen.insert(image.hash()).second) visit(image);
  });
}

Disk any_image(const SimFs& fs, std::mt19937_64& random) {
  Medium medium(fs.start(), random);
  for (std::size_t i = 0; i < fs.log().size(); ++i) medium.take(fs.log()[i], i);
  const auto atoms = random() % 2 == 0 ? medium.pending() : medium.torn(kSectorBytes);
  if (atoms.empty()) return medium.durable();
  if (random() % 4 == 0) return medium.with(atoms, [](std::size_t) { return true; });
  const auto chosen = choose_atoms(atoms.size(), random(), random);
  return medium.with(atoms, [&](std::size_t i) { return chosen[i]; });
}

std::unique_ptr<SimFs> next_boot(const SimFs& fs, std::mt19937_64& random) {
  auto out = std::make_unique<SimFs>(any_image(fs, random));
  out->start_log();
  return out;
}

}  // namespace vellum::sim
