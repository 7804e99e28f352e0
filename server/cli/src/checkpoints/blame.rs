//! `sightline checkpoint blame`.

use std::fs;

use sightline_base::escape::one_line;
use sightline_engine::{
    error::Error,
    render::{CHANGED, DIM, timeline::Clock},
};
use sightline_protocol::{
    checkpoint::{BlameAuthor, BlameLine, BlameParams},
    method::Blame,
};

use super::{print_as, with_paths};
use crate::requests::Requests;

/// `sightline checkpoint blame`.
pub(super) fn blame(requests: &Requests, path: &str) -> Result<i32, Error> {
    let written = [path.to_owned()];
    let (file, blamed) = with_paths(requests, &written, |paths| {
        let path = paths.unwrap_or_default().concat();
        let params = BlameParams {
            path: path.clone(),
            root: requests.root_uri()?,
        };
        Ok((path, requests.call::<Blame>(params)?))
    })?;
    print_as(&requests.workspace, &blamed, |blamed| {
        // The request allowed it to be read.
        let text = fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines();
        let clock = Clock::now();
        let authors: Vec<String> = blamed.lines.iter().map(author).collect();
        let times: Vec<String> = blamed
            .lines
            .iter()
            .map(|line| line.at.map_or_else(String::new, |at| clock.time(at)))
            .collect();
        let widest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or_default();
        let (names, clocks) = (widest(&authors), widest(&times));
        let digits = blamed.lines.len().to_string().len();
        let rows = blamed.lines.iter().zip(authors.iter().zip(&times));
        rows.map(|(line, (author, time))| {
            let text = lines.next().unwrap_or_default().replace('\t', "    ");
            let text = one_line(&text);
            format!(
                "{CHANGED}{author:<names$}{CHANGED:#}  {DIM}{time:<clocks$}  {:>digits$}{DIM:#}  {text}\n",
                line.line
            )
        })
        .collect()
    })
}

fn author(line: &BlameLine) -> String {
    match (line.by, &line.turn) {
        (BlameAuthor::Unknown, _) => "?".to_owned(),
        (BlameAuthor::User, _) => "you".to_owned(),
        (BlameAuthor::Agent, Some(turn)) => turn.clone(),
        (BlameAuthor::Agent, None) => line.turns.join(","),
    }
}
