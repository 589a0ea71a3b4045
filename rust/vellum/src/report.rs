//! What a commit reports.
use std::time::Duration;

use vellum_sys as sys;

/// The result of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitReport {
    /// Of the version that is now the head.
    pub sequence: u64,
    /// Pages that were written.
    pub pages_dirty: u64,
    /// Of these, pages whose bytes differ from the last commit.
    pub pages_changed: u64,
    /// To journal and packs.
    pub bytes_written: u64,
    /// Written to packs, with the journal's earlier commits.
    pub checkpointed: bool,
    /// Of all its stages.
    pub total_time: Duration,
    /// For an asynchronous commit: the duration of the call.
    pub pause_time: Duration,
}

impl CommitReport {
    pub(crate) fn from_c(report: &sys::vellum_commit_report) -> CommitReport {
        CommitReport {
            sequence: report.sequence,
            pages_dirty: report.pages_dirty,
            pages_changed: report.pages_changed,
            bytes_written: report.bytes_written,
            checkpointed: report.checkpointed != 0,
            total_time: Duration::from_nanos(report.total_ns),
            pause_time: Duration::from_nanos(report.pause_ns),
        }
    }
}
