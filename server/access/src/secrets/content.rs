//! Secret contents: private keys and credentials, in files whose names say little.
//!
//! Some of the built-in rules deny a version of a file only if that version is
//! secret: the file on the disk, the text in an editor, or a version in a repository. A content that is unknown, not
//! text or too large counts as secret.

use std::{borrow::Cow, io};

use ropey::Rope;

use crate::Denial;

/// Size of the largest content that is searched, in bytes.
pub(crate) const MAX_BYTES: usize = 64 << 10;
/// Length of the shortest key without a header, in bytes: a Rails master key has 32.
const MIN_KEY_BYTES: usize = 20;
/// Texts in private keys: PEM of all kinds, PuTTY, age, OpenVPN, `openssl -text`, minisign and signify.
const PRIVATE_KEYS: &[&str] = &[
    "PRIVATE KEY",
    "PuTTY-User-Key-File-",
    "AGE-SECRET-KEY-",
    "OpenVPN Static key",
    "Private-Key:",
    "secret key",
    "</D></RSAKeyValue>",
];
/// Members of a JSON object with `kty`, a key (RFC 7517), that are private.
const PRIVATE_MEMBERS: &[&str] = &["\"d\"", "\"k\""];
/// Ends of the names of settings whose values are credentials.
pub(crate) const CREDENTIALS: &[&str] = &[
    "authident",
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "private_key",
    "privatekey",
    "otp",
];
/// Starts of values that are no credentials; the last ones are references of opencode.
const PLACEHOLDERS: &str =
    "changeme change_me change-me example placeholder redacted your- your_ {env: {file:";
/// A name, not only the end of one: `always-auth` is no credential.
const AUTH: &str = "_auth";
/// Beginnings of tokens, and the minimum length of the letters and digits after one.
const TOKENS: &str = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- sk-ant- sk-proj- sk-or-";
const MIN_TOKEN_BYTES: usize = 16;
/// Why a content over [`MAX_BYTES`] counts as secret.
const TOO_LARGE: &str = "has more than 64 KiB";
/// Replaces references to variables.
const REFERENCE: char = '\u{1}';

/// The version of a file that is checked.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// The file on the disk.
    OnDisk,
    /// The text in an editor.
    Text(&'a Rope),
}

impl Denial {
    /// Returns the denial for a content, or `None` if the content may be seen.
    pub fn of_content(self, content: &[u8]) -> Option<Self> {
        if !self.by_content {
            return Some(self);
        }
        find_secret(content).map(|why| self.because(why))
    }

    /// [`Self::of_content`] for the text in an editor.
    pub(crate) fn of_text(self, text: &Rope) -> Option<Self> {
        let start = text.byte_slice(..text.len_bytes().min(MAX_BYTES + 1));
        self.of_content(start.to_string().as_bytes())
    }

    /// The denial if the content cannot be read.
    pub(crate) fn unreadable(self, error: &io::Error) -> Self {
        self.because(&format!("cannot be read ({error})"))
    }

    /// The denial if the content is not known.
    pub(crate) fn unknown(self) -> Self {
        self.because("has a content that could not be determined")
    }

    /// Names the version with the content in the reason.
    pub(crate) fn of_version(mut self, version: &str) -> Self {
        if let Some(why) = self.reason.strip_prefix("it ") {
            self.reason = format!("{version} {why}");
        }
        self
    }

    fn because(self, why: &str) -> Self {
        Self {
            reason: format!("it {why}"),
            ..self
        }
    }
}

/// Returns why a content counts as secret: "contains a private key".
fn find_secret(content: &[u8]) -> Option<&'static str> {
    if content.len() > MAX_BYTES {
        return Some(TOO_LARGE);
    }
    let Some(text) = str::from_utf8(content)
        .ok()
        .filter(|text| !text.contains('\0'))
    else {
        return Some("is not text");
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_private = PRIVATE_KEYS.iter().any(|mark| text.contains(mark));
    if is_private || is_bare_key(text) || is_private_jwk(text) {
        return Some("contains a private key");
    }
    let text = without_references(text);
    let has_credential = has_setting(&text)
        || TOKENS
            .split(' ')
            .any(|start| text.split(start).skip(1).any(is_token))
        || text.split("://").skip(1).any(has_user_info);
    has_credential.then_some("contains a credential")
}

/// Returns whether a text begins with the random part of a token.
fn is_token(text: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let part: Vec<u8> = text.bytes().take_while(|byte| is_part(byte)).collect();
    part.len() >= MIN_TOKEN_BYTES && part.iter().any(u8::is_ascii_digit)
}

/// Returns whether a text contains a private key as JSON.
fn is_private_jwk(text: &str) -> bool {
    let has_member = |name: &str| {
        let mut rests = text.split(name).skip(1);
        rests.any(|rest| rest.trim_start().starts_with(':'))
    };
    has_member("\"kty\"") && PRIVATE_MEMBERS.iter().any(|name| has_member(name))
}

/// Returns whether a text is a key in hexadecimal digits or Base64, without a header.
fn is_bare_key(text: &str) -> bool {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let is_key = |line: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_.".contains(&byte);
        line.trim_end_matches('=').bytes().all(is_allowed)
    };
    let starts_as_key = lines.peek().is_some_and(|line| {
        line.len() >= MIN_KEY_BYTES && line.bytes().any(|byte| byte.is_ascii_digit())
    });
    starts_as_key && lines.all(is_key)
}

/// Replaces `${NAME}`, whose value is not in the text. A default value is: `${NAME:-value}`.
fn without_references(text: &str) -> Cow<'_, str> {
    if !text.contains("${") {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        plain.push_str(before);
        let reference = after.split_once('}').filter(|(name, _)| {
            let name = name.trim().trim_end_matches([':', '-', '?']);
            let is_named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            !name.is_empty() && name.chars().all(is_named)
        });
        match reference {
            Some((_, after)) => {
                plain.push(REFERENCE);
                rest = after;
            }
            None => {
                plain.push_str("${");
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain.into()
}

/// Returns whether the text after `://` begins with a password, or with a name that may be a token.
fn has_user_info(url: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "/?#\"'`,<>".contains(c);
    let authority = url.split(ends).next().unwrap_or(url);
    let Some((user_info, _)) = authority.rsplit_once('@') else {
        return false;
    };
    match user_info.split_once(':') {
        Some((_, password)) => is_literal(password),
        // The user of all hosts of git repositories.
        None => user_info != "git" && is_literal(user_info),
    }
}

/// Returns whether a text has a setting whose name says that its value is a credential.
fn has_setting(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut lines = lower.lines().peekable();
    while let Some(line) = lines.next() {
        // A value may be on the next line, which is indented.
        let next = lines
            .peek()
            .filter(|next| next.starts_with([' ', '\t']))
            .map(|next| next.trim());
        let is_set = |name: &&str| {
            line.match_indices(*name)
                .any(|(at, _)| is_value_set(&line[at + name.len()..], &line[..at], next))
        };
        let is_auth = || {
            line.match_indices(AUTH).any(|(at, _)| {
                let before = &line[..at];
                !before.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && is_value_set(&line[at + AUTH.len()..], before, next)
            })
        };
        if CREDENTIALS.iter().any(is_set) || is_auth() {
            return true;
        }
    }
    false
}

/// Returns whether a value follows the name of a setting: `= value`, `: value`, or as the last word of the line.
fn is_value_set(after: &str, before: &str, next_line: Option<&str>) -> bool {
    // npm: `_authToken[]=value`
    let unquoted = after.trim_start_matches(['"', '\'', '[', ']']);
    let rest = unquoted.trim_start();
    let Some(value) = rest.strip_prefix(['=', ':']) else {
        let is_spaced = rest.len() < unquoted.len();
        let is_first = !before.contains(char::is_whitespace) && !before.starts_with(['#', ';']);
        let is_last = rest.split_whitespace().count() == 1;
        return is_spaced && is_first && is_last && is_value(rest);
    };
    let value = value.trim_start_matches(['=', '>']).trim_start();
    if value.is_empty() {
        return next_line.is_some_and(is_value);
    }
    is_value(value)
}

/// Returns whether a text begins with a value that is a credential.
fn is_value(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let ends = |c: char| c.is_whitespace() || "\"',;}".contains(c);
    let value = text.split(ends).next().unwrap_or(text);
    // The values in an object have names.
    if matches!(value, "{" | "[]") {
        return false;
    }
    let is_word = matches!(value, "true" | "false" | "null" | "none" | "~");
    !is_word && !is_placeholder(value) && is_literal(value)
}

/// Returns whether a value is a placeholder: `<token>`, `$TOKEN`, `%TOKEN%`, `{env:TOKEN}`, `***`, `your-token`.
fn is_placeholder(value: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_variable = |name: &str| !name.is_empty() && name.chars().all(is_name);
    let inner = |open: char, close: char| value.strip_prefix(open)?.strip_suffix(close);
    inner('<', '>').is_some_and(|it| !it.contains('>'))
        || inner('%', '%').is_some_and(is_variable)
        || value.strip_prefix('$').is_some_and(is_variable)
        || value.chars().all(|c| "x*.".contains(c))
        || PLACEHOLDERS
            .split(' ')
            .any(|start| value.starts_with(start))
}

/// Returns whether a value contains more than references.
fn is_literal(value: &str) -> bool {
    value.chars().any(|c| c != REFERENCE && !":/@".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_are_secret() {
        for kind in ["", "RSA ", "EC ", "DSA ", "ENCRYPTED ", "OPENSSH ", "ANY "] {
            let pem =
                format!("-----BEGIN {kind}PRIVATE KEY-----\nx\n-----END {kind}PRIVATE KEY-----\n");
            for text in [pem.clone(), format!("\u{feff}Bag Attributes\r\n{pem}")] {
                let found = find_secret(text.as_bytes());
                assert_eq!(found, Some("contains a private key"), "{text}");
            }
        }
        for text in [
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n",
            "PuTTY-User-Key-File-3: ssh-ed25519\n",
            "# created: 2026\nAGE-SECRET-KEY-1QQQQ\n",
            "-----BEGIN OpenVPN Static key V1-----\n",
            "Private-Key: (2048 bit)\n    00:aa\n",
            "untrusted comment: minisign encrypted secret key\n",
            "0123456789abcdef0123456789abcdef",
            "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSj\n",
            "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"a\",\"d\":\"b\"}",
            "{\"keys\": [{\n  \"d\" : \"b\",\n  \"kty\": \"OKP\"\n}]}",
            "{\"kty\": \"oct\", \"k\": \"abc\"}",
            "<RSAKeyValue><Modulus>a</Modulus><D>b</D></RSAKeyValue>",
        ] {
            let found = find_secret(text.as_bytes());
            assert_eq!(found, Some("contains a private key"), "{text}");
        }
    }

    #[test]
    fn credentials_are_secret() {
        for text in [
            "//registry.npmjs.org/:_authToken=npm_abc",
            "save-exact=true\n//host:8080/a/:_authToken = \"abc\"\n",
            "_auth=YTpi",
            "//host/:_auth = YTpi",
            "//host/:_password=YTpi\n//host/:username=a",
            "npmAuthToken: abc",
            "npmRegistries:\n  \"//host\":\n    npmAuthIdent: \"a:b\"\n",
            "npmAuthToken:\n  \"abc\"\n",
            "npmAuthToken: >-\n  abc\n",
            "npmAuthToken: \"${TOKEN:-abc}\"",
            "npmAuthToken: '${TOKEN-abc}'",
            "\"//host/:_authToken\" \"abc\"",
            "_authToken abc",
            "//r/:_authToken[]=abc",
            "[pypi]\nusername = __token__\npassword = pypi-abc\n",
            "[pypi]\npassword:\n\tabc\n",
            "[global]\nindex-url = https://user:pass@host/simple\n",
            "[global]\nindex-url = https://token@host/simple\n",
            "extra-index-url =\n  https://a/simple\n  https://${USER}:pass@host/simple\n",
            ":rubygems_api_key: abc",
            ":sources:\n- https://user:pa%20ss@gems.host/\n",
            "registry = { url = \"https://host\", token = \"abc\" }",
            "password=abc${MORE}",
            "# _authToken=abc",
            "{\n  \"primaryApiKey\": \"sk-ant-api03-abcdefgh01234567\"\n}",
            "{\"copilot_tokens\": {\"https://github.com:octocat\": \"gho_0123456789abcdefABCD\"}}",
            "{\"mcpServers\": {\"a\": {\"env\": {\"API_KEY\": \"abc\"}}}}",
            "{\"env\": {\n  \"ANTHROPIC_AUTH_TOKEN\": \"abc\"\n}}",
            "#GITHUB ghp_abcdefghijklmnopqrstuvwxyz0123456789AB\n",
            "otp=123456",
            "save-exact=true\notp = \"123456\"\n",
            "//host/:_password=$ecret!",
            "[Interface]\nPrivateKey = aGVsbG8=\n",
            "_AUTHTOKEN=ABC",
        ] {
            let found = find_secret(text.as_bytes());
            assert_eq!(found, Some("contains a credential"), "{text}");
        }
    }

    #[test]
    fn other_contents_are_not_secret() {
        for text in [
            "",
            "\n",
            "save-exact=true\n",
            "auto-install-peers-in-2026=true\n",
            "engine-strict=true\nregistry=https://registry.npmjs.org/\n@scope:registry=https://host/@scope/npm/\n",
            "//registry.npmjs.org/:_authToken=${NPM_TOKEN}\nalways-auth=true\nauth-type=legacy\n",
            "//host/:_authToken=\"${NPM_TOKEN}\"\n//host/:_auth=${NAME}:${PASS}\n_password=\n",
            "npmAuthToken: ${NPM_TOKEN:-}\nnpmAlwaysAuth: true\nyarnPath: .yarn/releases/yarn-4.5.0.cjs\n",
            "npmAuthToken:\nnodeLinker: node-modules\n",
            "otp=\n",
            "otp=${OTP}\n//host/:_authToken=$NPM_TOKEN\n//other/:_authToken=%NPM_TOKEN%\n",
            "//host/:_authToken=<token>\n_password=YOUR_PASSWORD\n_auth=xxxxxxxx\ntoken = ***\n",
            "{\"kty\":\"RSA\",\"n\":\"abc\",\"e\":\"AQAB\",\"kid\":\"d\"}",
            "laptop=1\nstop=2\noptional=true\ntotpages=3\n",
            "# the token is in the environment\n# see the password manager\n",
            "[distutils]\nindex-servers =\n    pypi\n[pypi]\nrepository = https://upload.pypi.org/legacy/\nusername = __token__\n",
            "[global]\nindex-url = https://${USER}:${PASS}@host/simple\n",
            "dependency = git+ssh://git@github.com/a/b.git\n",
            "gem: --no-document\n:backtrace: false\n",
            "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----\n",
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----\n",
            "title: keys of the keyboard\nq\nw\n",
            "{\"apiKeyHelper\": \"/bin/key\", \"env\": {\"MAX_THINKING_TOKENS\": \"8000\"}}",
            "{\"options\": {\"apiKey\": \"{env:OPENAI_API_KEY}\"}}",
            "{\"env\": {\"GITHUB_TOKEN\": \"${GITHUB_TOKEN}\"}, \"tokens\": {}, \"token\": {\n}}",
            "bearer_token_env_var = \"TOKEN\"\nmodel_auto_compact_token_limit = 64000\n",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxx\n",
        ] {
            assert_eq!(find_secret(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_searched_is_secret() {
        assert_eq!(find_secret(b"\x30\x82\x04"), Some("is not text"));
        assert_eq!(find_secret(b"a\0b"), Some("is not text"));
        let large = "a b\n".repeat(MAX_BYTES / 4);
        assert_eq!(find_secret(large.as_bytes()), None);
        assert_eq!(find_secret(format!("{large}.").as_bytes()), Some(TOO_LARGE));
    }
}
