//! Addresses of providers. A request is sent only to the one that its path names.

use std::{collections::BTreeMap, net::IpAddr};

use hyper::{
    Uri,
    http::uri::{Authority, Scheme},
};

/// Providers that are known by name.
const KNOWN: [(&str, &str); 9] = [
    ("anthropic", "https://api.anthropic.com"),
    (CHATGPT, "https://chatgpt.com/backend-api/codex"),
    ("codeassist", "https://cloudcode-pa.googleapis.com"),
    ("copilot", "https://api.githubcopilot.com"),
    ("gemini", "https://generativelanguage.googleapis.com"),
    ("lmstudio", "http://127.0.0.1:1234"),
    ("ollama", "http://127.0.0.1:11434"),
    (OPENAI, "https://api.openai.com"),
    ("openrouter", "https://openrouter.ai"),
];

const OPENAI: &str = "openai";
const CHATGPT: &str = "chatgpt";
/// Version in the paths of OpenAI, which those of ChatGPT lack.
const OPENAI_VERSION: &str = "/v1";

/// The address of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upstream {
    scheme: Scheme,
    authority: Authority,
    /// Path before that of a request, without a slash at its end.
    path: String,
}

impl Upstream {
    fn parse(name: &str, address: &str) -> Result<Self, String> {
        let cannot = |why: &str| format!("cannot use the upstream {name}: {why}");
        let uri: Uri = address
            .parse()
            .map_err(|_| cannot("write it as NAME=https://HOST/PATH"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(cannot("write it as NAME=https://HOST/PATH"));
        };
        let path = parts.path_and_query;
        if path.as_ref().is_some_and(|path| path.query().is_some())
            || authority.as_str().contains('@')
        {
            return Err(cannot("its address must have no user and no query"));
        }
        let is_secure =
            scheme == Scheme::HTTPS || scheme == Scheme::HTTP && is_loopback(authority.host());
        if !is_secure {
            return Err(cannot(
                "its address must start with https, or with http on loopback",
            ));
        }
        let path = path.map(|path| path.path().trim_end_matches('/').to_owned());
        Ok(Self {
            scheme,
            authority,
            path: path.unwrap_or_default(),
        })
    }

    /// Returns the address of a request, or `None` if `path` is no path.
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Option<Uri> {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}{query}", self.path))
            .build()
            .ok()
    }

    /// Returns the host, for messages.
    pub(crate) fn host(&self) -> &str {
        self.authority.as_str()
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// All providers by name.
pub(crate) struct Upstreams {
    by_name: BTreeMap<String, Upstream>,
    /// Whether ChatGPT tokens on the path of OpenAI go to ChatGPT. An own address of OpenAI is a
    /// gateway that gets both.
    has_own_chatgpt: bool,
}

impl Upstreams {
    /// Combines the known providers with those of the user.
    pub(crate) fn new(own: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut by_name = BTreeMap::new();
        let known = KNOWN.iter().copied();
        let own_ones = own.iter().map(|(name, url)| (name.as_str(), url.as_str()));
        for (name, address) in known.chain(own_ones) {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) {
                return Err(format!(
                    "cannot use the upstream {name:?}: its name may have letters, digits, `-`, `_` and `.`"
                ));
            }
            by_name.insert(name.to_owned(), Upstream::parse(name, address)?);
        }
        Ok(Self {
            by_name,
            has_own_chatgpt: own.contains_key(CHATGPT) || !own.contains_key(OPENAI),
        })
    }

    /// Returns the provider with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Upstream> {
        self.by_name.get(name)
    }

    /// Returns the provider of a request and its path there. Codex uses one address for keys of
    /// OpenAI and for ChatGPT accounts, which it names in a header.
    pub(crate) fn route<'a>(
        &self,
        name: &str,
        path: &'a str,
        is_of_chatgpt: bool,
    ) -> Option<(&Upstream, &'a str)> {
        if is_of_chatgpt && name == OPENAI && self.has_own_chatgpt {
            let path = path.strip_prefix(OPENAI_VERSION).unwrap_or(path);
            return Some((self.get(CHATGPT)?, path));
        }
        Some((self.get(name)?, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams(own: &[(&str, &str)]) -> Result<Upstreams, String> {
        let own = own.iter();
        let own = own.map(|(name, url)| ((*name).to_owned(), (*url).to_owned()));
        Upstreams::new(&own.collect())
    }

    fn uri(upstreams: &Upstreams, name: &str, path: &str, is_of_chatgpt: bool) -> String {
        let (upstream, path) = upstreams.route(name, path, is_of_chatgpt).unwrap();
        upstream.uri(path, Some("a=b")).unwrap().to_string()
    }

    #[test]
    fn only_secure_addresses_are_accepted() {
        for address in [
            "http://example.com",
            "http://10.0.0.1",
            "http://localhost.example.com",
            "ftp://127.0.0.1",
            "https://user:key@example.com",
            "https://example.com/?key=1",
            "example.com",
            "/v1",
            "",
        ] {
            assert!(upstreams(&[("own", address)]).is_err(), "{address}");
        }
        for address in [
            "http://127.0.0.1:1",
            "http://localhost:1/v1/",
            "http://[::1]:1",
            "https://example.com/a/b",
        ] {
            assert!(upstreams(&[("own", address)]).is_ok(), "{address}");
        }
        assert!(upstreams(&[("a/b", "https://example.com")]).is_err());
    }

    #[test]
    fn chatgpt_accounts_are_routed_by_their_header() {
        let known = upstreams(&[]).unwrap();
        let path = "/v1/responses";
        assert_eq!(
            uri(&known, "openai", path, false),
            "https://api.openai.com/v1/responses?a=b"
        );
        assert_eq!(
            uri(&known, "openai", path, true),
            "https://chatgpt.com/backend-api/codex/responses?a=b"
        );
        let chained = upstreams(&[("openai", "http://127.0.0.1:9/up/")]).unwrap();
        let uri = uri(&chained, "openai", path, true);
        assert_eq!(uri, "http://127.0.0.1:9/up/v1/responses?a=b");
    }
}
