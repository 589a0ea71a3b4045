// The list of the decoders' targets. Each is in the file of its subject.
#include "decoder_targets.hpp"

namespace vellum::fuzz {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
      {"superblock", fuzz_superblock},
      {"pack_header", fuzz_pack_header},
      {"pack_trailer", fuzz_pack_trailer},
      {"record", fuzz_record},
      {"index", fuzz_index},
      {"translation", fuzz_translation},
      {"journal_header", fuzz_journal_header},
      {"frame", fuzz_frame},
      {"commit", fuzz_commit},
      {"base_with_commits", fuzz_base_with_commits},
      {"version", fuzz_version},
      {"snapshot_ref", fuzz_snapshot_ref},
      {"signers", fuzz_signers},
      {"proof", fuzz_proof},
      {"gc_census", fuzz_gc_census},
      {"working_set", fuzz_working_set},
      {"key_slots", fuzz_key_slots},
      {"group_file", fuzz_group_file},
      {"group_record", fuzz_group_record},
      {"map_block", fuzz_map_block},
      {"run_root", fuzz_run_root},
      {"page_hashes", fuzz_page_hashes},
      {"delta_batch", fuzz_delta_batch},
      {"page_diff", fuzz_page_diff},
      {"redo", fuzz_redo},
      {"head", fuzz_head},
      {"hold", fuzz_hold},
      {"sealed_object", fuzz_sealed_object},
      {"name_table", fuzz_name_table},
      {"piece_list", fuzz_piece_list},
      {"list_on_base", fuzz_list_on_base},
      {"piece", fuzz_piece},
      {"remote_file", fuzz_remote_file},
      {"s3_listing", fuzz_s3_listing},
      {"name", fuzz_name},
      {"decompress", fuzz_decompress},
      {"compress", fuzz_compress},
  };
  return kTargets;
}

}  // namespace vellum::fuzz
