//! The secret values in a text.
//!
//! A value is one of a setting (`KEY=value`, `key: value`), a text in quotes, or a word. It counts if it
//! is long and random enough, and is no ordinary word, number, path or address.

use std::collections::BTreeSet;

use crate::secrets::content::CREDENTIALS;

/// Length of the shortest value, in bytes. Shorter ones occur by chance.
pub const MIN_BYTES: usize = 12;
/// Length of the longest value, in bytes.
const MAX_BYTES: usize = 4096;
/// Minimum entropy of a value, in bits per byte.
const MIN_ENTROPY: f64 = 3.0;
/// Length of the shortest line that is recognized as a whole, in bytes.
pub(super) const MIN_LINE_BYTES: usize = 20;
/// Length of the longest word of lowercase letters.
const MAX_WORD_BYTES: usize = 20;
/// Length of the longest word with digits between its letters.
const MAX_MIXED_BYTES: usize = 7;

/// Returns the secret values in the content of a denied file.
pub(super) fn secret_values(text: &str) -> BTreeSet<&str> {
    let mut values = BTreeSet::new();
    // A setting of several lines is written with `\n`, and printed as lines.
    let pieces = text.lines().filter(|line| line.contains("\\n"));
    let pieces =
        pieces.flat_map(|line| line.split("\\n").map(|piece| piece.trim_end_matches("\\r")));
    for line in text.lines().chain(pieces).map(str::trim) {
        if let Some((name, value)) = setting(line)
            && is_secret(value, is_credential(name))
        {
            values.insert(value);
        }
        for quote in ['"', '\'', '`'] {
            values.extend(
                line.split(quote)
                    .skip(1)
                    .step_by(2)
                    .filter(|text| is_secret(text, false)),
            );
        }
        for word in line.split_whitespace() {
            let bare = word.trim_matches(|c| "\"'`,;()[]{}<>".contains(c));
            let is_setting = bare.trim_end_matches('=').contains('=');
            let parts = bare.split(|c| "=:@/?&#,;|()[]{}<>\"'`".contains(c));
            values.extend(
                (!is_setting)
                    .then_some(bare)
                    .into_iter()
                    .chain(parts)
                    .filter(|part| is_secret(part, false)),
            );
        }
        values.extend(password(line).filter(|value| is_secret(value, true)));
    }
    values
}

/// Returns whether a line is recognized as a whole, without its secret values.
pub(super) fn is_distinctive(line: &str, min_bytes: usize) -> bool {
    let is_frame_of_key = line.starts_with("-----") && line.ends_with("-----");
    !is_frame_of_key
        && (min_bytes..=MAX_BYTES).contains(&line.len())
        && entropy(line) >= MIN_ENTROPY
}

/// Splits `export NAME="value" # comment` and `name: value,`.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(['=', ':'])?;
    let value = value
        .trim_start_matches(['=', '>'])
        .trim()
        .trim_end_matches([',', ';']);
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return Some((name, quoted.split(quote).next()?));
        }
    }
    Some((name, value.split(" #").next()?.trim_end()))
}

fn is_credential(name: &str) -> bool {
    let name = name.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    name.ends_with("key") || CREDENTIALS.iter().any(|end| name.ends_with(end))
}

/// Returns the password in an address: `scheme://user:password@host`.
fn password(line: &str) -> Option<&str> {
    let (_, address) = line.split_once("://")?;
    let ends = |c: char| c.is_whitespace() || "/?#\"'`,<>".contains(c);
    let (user_info, _) = address.split(ends).next()?.rsplit_once('@')?;
    user_info.split_once(':').map(|(_, password)| password)
}

/// Returns whether a value is secret. `is_credential`: it is known to be a password, token or key.
fn is_secret(value: &str, is_credential: bool) -> bool {
    value.len() >= MIN_BYTES
        && value.len() <= MAX_BYTES
        && !value.starts_with("$")
        && !value.starts_with(['<', '{', '%'])
        // A time has two letters.
        && value.chars().filter(|c| c.is_alphabetic()).count() > 2
        && !value.chars().any(char::is_control)
        && entropy(value) >= MIN_ENTROPY
        && !is_path(value)
        && !is_address(value)
        && (is_credential || !is_words(value))
}

fn is_path(value: &str) -> bool {
    let starts = ["./", "../", "~/"];
    let is_rooted = value.starts_with('/') || value.get(1..3).is_some_and(|drive| drive == ":\\");
    // Base64 may start with a slash.
    starts.iter().any(|start| value.starts_with(start)) || is_rooted && is_words(value)
}

/// Returns whether a value is an address without a password.
fn is_address(value: &str) -> bool {
    value.contains("://") && password(value).is_none()
}

/// Returns whether a value consists of words, names and short numbers: `eu-central-1`, `myAppName`.
fn is_words(value: &str) -> bool {
    let mut words = value.split(|c: char| !c.is_alphanumeric());
    words.all(is_word)
}

fn is_word(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = word.len() - letters.len();
    if word.len() < 4 || letters.is_empty() {
        return true;
    }
    // `utf8mb4`, `i18n`.
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let all_digits = word.bytes().filter(u8::is_ascii_digit).count();
    if word.len() <= MAX_MIXED_BYTES && all_digits <= 2 && word.bytes().all(is_plain) {
        return true;
    }
    if digits > 3 || !letters.chars().all(char::is_alphabetic) {
        return false;
    }
    let uppercase = letters.chars().filter(|c| c.is_uppercase()).count();
    let count = letters.chars().count();
    if uppercase == count || uppercase == 0 {
        return count <= MAX_WORD_BYTES;
    }
    // `camelCase` has few capitals.
    count >= 3 * uppercase
}

/// Returns the entropy of a text, in bits per byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    #[allow(clippy::cast_precision_loss, reason = "texts are short")]
    let total = text.len() as f64;
    let used = counts.iter().filter(|count| **count > 0);
    used.map(|count| {
        let share = f64::from(*count) / total;
        -share * share.log2()
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_settings_words_and_quotes_are_secret() {
        for (text, value) in [
            ("API_KEY=sk-live-51H8x9JkLmNoP\n", "sk-live-51H8x9JkLmNoP"),
            (
                "export TOKEN='gh0_a1B2c3D4e5F6' # mine\n",
                "gh0_a1B2c3D4e5F6",
            ),
            ("PASSWORD=correct-horse-battery\n", "correct-horse-battery"),
            (
                "  \"client_secret\": \"Zx9-Qw8_Er7.Ty6\",\n",
                "Zx9-Qw8_Er7.Ty6",
            ),
            ("db:\n  password: p4ssW0rd-of-db!\n", "p4ssW0rd-of-db!"),
            (
                "DATABASE_URL=postgres://app:Tr0ub4dor-and-3@db/x\n",
                "Tr0ub4dor-and-3",
            ),
            (
                "machine host login me password q8Zr2Lm4Kp6T\n",
                "q8Zr2Lm4Kp6T",
            ),
            ("host:5432:db:me:q8Zr2Lm4Kp6T\n", "q8Zr2Lm4Kp6T"),
            (
                "HOOK=https://hooks.host/services/a8Kd9Lq2Zx7Wm3Rt\n",
                "a8Kd9Lq2Zx7Wm3Rt",
            ),
            (
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            ),
            (
                "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
                "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
            ),
        ] {
            let found = secret_values(text);
            assert!(found.contains(value), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_frame_of_a_key_is_not_distinctive() {
        assert!(is_distinctive("a line of a denied file", 12));
        assert!(!is_distinctive("-----BEGIN PRIVATE KEY-----", 12));
    }

    #[test]
    fn words_numbers_paths_and_addresses_are_not_secret() {
        for text in [
            "NODE_ENV=development\nREGION=eu-central-1\nPORT=3000\n",
            "APP_NAME=my_great_application\nTITLE=\"My great application\"\n",
            "HOME_DIR=/usr/local/share/applications\nLOG=./logs/server-output.log\n",
            "API=https://api.example.com/v1/users?page=2\n",
            "SSH_KEY=~/.ssh/id_ed25519\n",
            "CHARSET=utf8mb4_unicode_ci\nTEXTS=i18n_l10n_texts\n",
            "START=2026-11-26T00:00:00Z\nPHONE=004912345678901\n",
            "PASSWORD=hunter2\nKEY=aaaaaaaaaaaaaaaaaaaa\n",
            "TOKEN=${GITHUB_TOKEN_FOR_TESTS}\nSECRET=<your-secret-goes-here>\n",
            "MAIL=support.team@example.com\nclass: ApplicationController\n",
            "# A comment about the configuration of this program\n",
            "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        ] {
            let found = secret_values(text);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }
}
