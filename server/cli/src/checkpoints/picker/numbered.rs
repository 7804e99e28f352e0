//! The list of a terminal that can only print: the answer is a number.

use sightline_engine::{
    error::Error,
    render::timeline::{Clock, Row},
};

use super::super::confirm::answer;
use crate::print_styled as print;

/// Number of rows to print at once.
const PAGE: usize = 20;

/// Prints the rows and asks for one. Returns its id.
///
/// # Errors
/// `storage` if the terminal cannot be used.
pub(super) fn choose(rows: &[Row]) -> Result<Option<String>, Error> {
    let mut shown: Vec<&Row> = rows.iter().collect();
    let mut printed = 0;
    loop {
        let clock = Clock::now();
        let page = shown.iter().enumerate().skip(printed).take(PAGE);
        let width = shown.len().to_string().len();
        let entries = page.map(|(at, row)| {
            let text = row.text(&clock);
            // The line below the first is that of what changed before.
            let indented = text.trim_end().replace('\n', &format!("\n{:width$}  ", ""));
            format!("{:>width$}  {indented}\n", at + 1)
        });
        print(&entries.collect::<String>())?;
        printed = shown.len().min(printed + PAGE);
        let more = match shown.len() - printed {
            0 => String::new(),
            more => format!("enter for {more} more, "),
        };
        let answer = answer(&format!(
            "Number of the state to restore, {more}/text to filter, q to quit: "
        ))?;
        match answer.as_deref() {
            None | Some("q") => return Ok(None),
            Some("") if more.is_empty() => return Ok(None),
            Some("") => {}
            Some(answer) if answer.starts_with('/') => {
                let wanted = answer[1..].to_lowercase();
                shown = rows.iter().filter(|row| row.contains(&wanted)).collect();
                printed = 0;
                if shown.is_empty() {
                    print("nothing matches\n")?;
                }
            }
            Some(answer) => {
                let number = answer.parse::<usize>().ok();
                let row = number.and_then(|number| shown.get(number.checked_sub(1)?));
                if let Some(row) = row {
                    return Ok(Some(row.id.clone()));
                }
                print(&format!("not a number from 1 to {}\n", shown.len()))?;
                printed = shown.len();
            }
        }
    }
}
