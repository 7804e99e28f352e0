//! `sightline checkpoint commit`.

use sightline_base::escape::one_line;
use sightline_engine::error::Error;
use sightline_protocol::{
    checkpoint::{CommitCheckpointParams, short_id},
    method::CommitCheckpoint,
};

use super::print_as;
use crate::requests::Requests;

/// `sightline checkpoint commit`.
pub(super) fn commit(
    requests: &Requests,
    id: &str,
    branch: &str,
    message: Option<String>,
) -> Result<i32, Error> {
    let made = requests.call::<CommitCheckpoint>(CommitCheckpointParams {
        id: id.to_owned(),
        branch: branch.to_owned(),
        message,
        root: requests.root_uri()?,
    })?;
    print_as(&requests.workspace, &made, |made| {
        let (commit, branch) = (short_id(&made.commit), one_line(&made.branch));
        format!("commit {commit} on the new branch {branch}\n")
    })
}
