//! Names of turns, such as `claude-2.3`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Maximum length of the agent in a name, in bytes.
const MAX_AGENT: usize = 32;

/// Name of a turn: the agent, the number of its session in the root, and the number of the prompt in
/// the session. A name is never used again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TurnName {
    pub(super) agent: String,
    pub(super) session: u64,
    /// Number of the prompt in the session, from 1.
    pub number: u64,
}

impl TurnName {
    /// Returns the name of a turn. Other characters than letters, digits, `-` and `_` of the agent
    /// become `_`.
    pub(super) fn new(agent: &str, session: u64, number: u64) -> Self {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let mut agent: String = agent
            .chars()
            .map(|c| {
                if valid(c) {
                    c.to_ascii_lowercase()
                } else {
                    '_'
                }
            })
            .collect();
        if !agent.starts_with(|c: char| c.is_ascii_alphabetic()) {
            agent.insert_str(0, "agent_");
        }
        agent.truncate(MAX_AGENT);
        Self {
            agent,
            session,
            number,
        }
    }

    /// Returns the name of the session, which the names of its turns begin with.
    pub fn session(&self) -> String {
        format!("{}-{}", self.agent, self.session)
    }
}

impl fmt::Display for TurnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}.{}", self.agent, self.session, self.number)
    }
}

impl From<TurnName> for String {
    fn from(name: TurnName) -> Self {
        name.to_string()
    }
}

/// A text that is not the name of a turn.
#[derive(Debug, thiserror::Error)]
#[error("not the name of a turn")]
pub struct InvalidName;

impl TryFrom<String> for TurnName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl FromStr for TurnName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let number = |digits: &str| {
            let is_canonical =
                digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse().ok().filter(|_| is_canonical)
        };
        let parsed = || {
            let (session, turn) = text.rsplit_once('.')?;
            let (agent, session) = session.rsplit_once('-')?;
            let name = Self::new(agent, number(session)?, number(turn)?);
            (name.agent == agent).then_some(name)
        };
        parsed().ok_or(InvalidName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_as_it_is_written() {
        for name in ["claude-2.3", "my-agent_x-10.200", "agent_2-1.1"] {
            assert_eq!(name.parse::<TurnName>().unwrap().to_string(), name);
        }
        assert_eq!(TurnName::new("Käte 2", 1, 2).to_string(), "k_te_2-1.2");
        assert_eq!(TurnName::new("", 1, 2).to_string(), "agent_-1.2");
        let long = TurnName::new(&"7".repeat(40), 1, 2).to_string();
        assert_eq!(long.parse::<TurnName>().unwrap().to_string(), long);
        for wrong in [
            "",
            "claude",
            "claude-2",
            "claude-0.1",
            "claude-2.03",
            "claude-2.x",
            "-2.3",
            "Claude-2.3",
            "claude-2.3+",
            "2-2.3",
            "claude-+2.3",
            "#3",
            "claude-2.99999999999999999999",
        ] {
            assert!(wrong.parse::<TurnName>().is_err(), "{wrong}");
        }
    }
}
