// fuzz/decoder_targets.hpp: one function for each decoder. All check the same rules: no crash, no
// read outside the input, no disproportionate allocation, and every input that decodes gives a
// value that encodes and decodes again to itself.
#pragma once

#include "target.hpp"

namespace vellum::fuzz {

// fixed_structures.cpp: these end in a checksum. Each input runs unchanged, and again with a
// corrected checksum.
void fuzz_superblock(View input);
void fuzz_pack_header(View input);
void fuzz_pack_trailer(View input);
void fuzz_journal_header(View input);
void fuzz_snapshot_ref(View input);
void fuzz_signers(View input);
void fuzz_proof(View input);
void fuzz_gc_census(View input);
void fuzz_working_set(View input);
void fuzz_key_slots(View input);
void fuzz_group_file(View input);
void fuzz_group_record(View input);
// records.cpp
void fuzz_record(View input);
void fuzz_index(View input);
void fuzz_translation(View input);
void fuzz_frame(View input);
// bodies.cpp: no checksum of their own.
void fuzz_commit(View input);
void fuzz_base_with_commits(View input);
void fuzz_version(View input);
void fuzz_map_block(View input);
void fuzz_run_root(View input);
void fuzz_page_hashes(View input);
// redo.cpp: the journal of an atomic file.
void fuzz_redo(View input);
// remote_objects.cpp: replies of a server, and a store's state of a remote.
void fuzz_head(View input);
void fuzz_hold(View input);
void fuzz_sealed_object(View input);
void fuzz_name_table(View input);
void fuzz_piece_list(View input);
void fuzz_list_on_base(View input);
void fuzz_piece(View input);
void fuzz_remote_file(View input);
void fuzz_s3_listing(View input);
// deltas.cpp
void fuzz_delta_batch(View input);
void fuzz_page_diff(View input);
// text_and_codecs.cpp
void fuzz_name(View input);
void fuzz_decompress(View input);
void fuzz_compress(View input);

}  // namespace vellum::fuzz
