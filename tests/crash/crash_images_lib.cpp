#include "crash/crash_images_lib.hpp"

#include <algorithm>

namespace vellum::crash {

using Kind = Op::Kind;

void Atom::apply_to(Disk& disk) const {
  switch (kind) {
    case Kind::write:
      return disk.edit(inode).content.write(offset, bytes);
    case Kind::extend: {
      Content& content = disk.edit(inode).content;
      if (content.size() < offset) content.resize(offset);
      return;
    }
    case Kind::truncate:
      return disk.edit(inode).content.resize(offset);
    case Kind::allocate:
      return disk.edit(inode).content.allocate(offset, length);
    case Kind::punch:
      return disk.edit(inode).content.punch(offset, length);
    case Kind::link:
      disk.edit(directory).entries[name] = inode;
      return;
    case Kind::unlink:
      disk.edit(directory).entries.erase(name);
      return;
  }
}

namespace {

bool is_data(const Atom& a) { return a.kind != Atom::Kind::link && a.kind != Atom::Kind::unlink; }

Atom data_atom(Atom::Kind kind, const Op& op, std::size_t position) {
  Atom a;
  a.kind = kind;
  a.inode = op.inode;
  a.offset = op.offset;
  a.length = op.length;
  a.op = position;
  if (op.bytes != nullptr) a.bytes = *op.bytes;
  return a;
}

Atom name_atom(Atom::Kind kind, const Op& op, InodeId directory, const std::string& name,
               std::size_t position) {
  Atom a;
  a.kind = kind;
  a.inode = op.inode;
  a.directory = directory;
  a.name = name;
  a.op = position;
  return a;
}

}  // namespace

CrashImages::CrashImages(Disk start, const std::vector<Op>& log, const Effort& effort,
                         std::uint64_t seed)
    : durable_(std::move(start)), log_(log), effort_(effort), random_(seed) {}

void CrashImages::make_durable(const std::function<bool(const Atom&)>& which) {
  std::vector<Atom> left;
  for (Atom& a : pending_) {
    if (which(a)) {
      a.apply_to(durable_);
    } else {
      left.push_back(std::move(a));
    }
  }
  pending_ = std::move(left);
}

// The names in a directory last. A file that was renamed into it has no other name then; one that
// was made and renamed since has never been.
void CrashImages::sync_directory(InodeId directory) {
  std::vector<std::size_t> renames;
  for (const Atom& a : pending_) {
    if (a.kind == Atom::Kind::link && a.directory == directory) renames.push_back(a.op);
  }
  const auto of_rename = [&](const Atom& a) {
    return a.second_half && std::find(renames.begin(), renames.end(), a.op) != renames.end();
  };
  std::vector<std::pair<InodeId, std::string>> gone;
  for (const Atom& a : pending_) {
    if (of_rename(a)) gone.emplace_back(a.directory, a.name);
  }
  make_durable([&](const Atom& a) {
    if (is_data(a)) return false;
    if (a.directory == directory || of_rename(a)) return true;
    return std::find(gone.begin(), gone.end(), std::pair(a.directory, a.name)) != gone.end();
  });
}

// After a failed sync the kernel takes the data for clean: some of it got there, the rest never
// will.
void CrashImages::lose(InodeId inode) {
  std::vector<Atom> left;
  for (const Atom& a : torn(kSectorBytes)) {
    if (is_data(a) && a.inode == inode && random_() % 2 == 0) a.apply_to(durable_);
  }
  std::erase_if(pending_, [&](const Atom& a) { return is_data(a) && a.inode == inode; });
}

void CrashImages::add_atoms(const Op& op, std::size_t position) {
  const auto data = [&](Atom::Kind kind) { pending_.push_back(data_atom(kind, op, position)); };
  switch (op.kind) {
    case Kind::write:
      return data(Atom::Kind::write);
    case Kind::truncate:
      return data(Atom::Kind::truncate);
    case Kind::allocate:
      return data(Atom::Kind::allocate);
    case Kind::punch:
      return data(Atom::Kind::punch);
    case Kind::link:
      pending_.push_back(name_atom(Atom::Kind::link, op, op.directory, op.name, position));
      return;
    case Kind::unlink:
      pending_.push_back(name_atom(Atom::Kind::unlink, op, op.directory, op.name, position));
      return;
    case Kind::rename:
      pending_.push_back(name_atom(Atom::Kind::link, op, op.to_directory, op.to_name, position));
      pending_.push_back(name_atom(Atom::Kind::unlink, op, op.directory, op.name, position));
      pending_.back().second_half = true;
      return;
    default:
      return;
  }
}

void CrashImages::take(std::size_t position) {
  const Op& op = log_[position];
  switch (op.kind) {
    case Kind::new_inode:
      durable_.add_inode(op.is_directory);
      return;
    case Kind::sync_data:
      return make_durable([&](const Atom& a) { return is_data(a) && a.inode == op.inode; });
    case Kind::sync_directory:
      return sync_directory(op.inode);
    case Kind::lost_sync:
      return lose(op.inode);
    case Kind::states:
      low_ = op.low;
      high_ = op.high;
      return;
    default:
      return add_atoms(op, position);
  }
}

void CrashImages::for_each(const Visit& visit) {
  visit(durable_, low_, high_);
  for (std::size_t i = 0; i < log_.size(); ++i) {
    const std::size_t low = low_;
    take(i);
    switch (log_[i].kind) {
      case Kind::new_inode:
      case Kind::sync_data:
      case Kind::sync_directory:
        break;  // nothing that was not possible a step before
      case Kind::states:
        // Less is allowed now: what was right a step before may be wrong.
        if (low_ != low) visit_all(0, visit);
        break;
      case Kind::lost_sync:
        visit_all(0, visit);
        break;
      default:
        visit_all(i, visit);
    }
  }
}

// Pending writes in pieces; sizes may grow before any of the data comes.
std::vector<Atom> CrashImages::torn(std::uint64_t piece_bytes) const {
  std::vector<Atom> out;
  for (const Atom& a : pending_) {
    if (a.kind != Atom::Kind::write || a.bytes.empty()) {
      out.push_back(a);
      continue;
    }
    const std::uint64_t end = a.offset + a.bytes.size();
    if (durable_.at(a.inode).content.size() < end) {
      Atom size = a;
      size.kind = Atom::Kind::extend;
      size.offset = end;
      size.bytes = {};
      out.push_back(std::move(size));
    }
    for (std::uint64_t at = a.offset; at < end;) {
      const std::uint64_t next = std::min(end, (at / piece_bytes + 1) * piece_bytes);
      Atom piece = a;
      piece.offset = at;
      piece.bytes = a.bytes.subspan(static_cast<std::size_t>(at - a.offset),
                                    static_cast<std::size_t>(next - at));
      out.push_back(std::move(piece));
      at = next;
    }
  }
  return out;
}

// `newest`: only subsets with something of this call or a later one.
void CrashImages::visit_all(std::size_t newest, const Visit& visit) {
  ++crash_points_;
  visit_subsets(pending_, newest, effort_.exhaustive, effort_.samples, visit);
  std::size_t before = pending_.size();
  for (const std::uint64_t piece_bytes : {kChunkBytes, kSectorBytes}) {
    const auto atoms = torn(piece_bytes);
    if (atoms.size() == before) continue;  // nothing to tear, or nothing more
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
    visit_one(atoms, [mask](std::size_t i) { return (mask >> i & 1) != 0; }, visit);
  }
}

// All, all but one and the beginnings come first: they are what really happens.
void CrashImages::visit_samples(const std::vector<Atom>& atoms, std::size_t newest,
                                std::size_t samples, const Visit& visit) {
  const std::size_t n = atoms.size();
  visit_one(atoms, [](std::size_t) { return true; }, visit);
  for (std::size_t s = 1; s < samples; ++s) {
    const std::size_t at = random_() % n;
    const std::uint64_t chance = 1 + random_() % 15;
    std::vector<bool> chosen(n);
    switch (s % 4) {
      case 0:
        for (std::size_t i = 0; i < n; ++i) chosen[i] = i != at;
        break;
      case 1:
        for (std::size_t i = 0; i < n; ++i) chosen[i] = i < at;
        break;
      default:
        for (std::size_t i = 0; i < n; ++i) chosen[i] = random_() % 16 < chance;
    }
    bool fresh = newest == 0;
    for (std::size_t i = 0; i < n; ++i) fresh |= chosen[i] && atoms[i].op >= newest;
    if (fresh) visit_one(atoms, [&](std::size_t i) { return chosen[i]; }, visit);
  }
}

void CrashImages::visit_one(const std::vector<Atom>& atoms,
                            const std::function<bool(std::size_t)>& chosen, const Visit& visit) {
  Disk image = durable_;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (chosen(i)) atoms[i].apply_to(image);
  }
  visit(image, low_, high_);
}

}  // namespace vellum::crash
