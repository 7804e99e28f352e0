//! Addresses of servers that run already.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// Address and port.
    pub address: SocketAddr,
    /// Address and port as written.
    pub host: String,
    /// The rest of the URL.
    pub path: String,
}

/// Parses the URL of a server that Sightline may connect to: a literal address of this machine, because a
/// name could lead elsewhere.
///
/// # Errors
/// If it is another one.
pub fn loopback(url: &str) -> Result<Loopback, String> {
    // It may contain a token.
    let other = || {
        "the address is not `http://127.0.0.1:PORT/...` or `http://[::1]:PORT/...`; its own program connects to \
         others: `sightline mcp add URL`"
            .to_owned()
    };
    let rest = url.strip_prefix("http://").ok_or_else(other)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let address: SocketAddr = host
        .parse()
        .or_else(|_| format!("{host}:80").parse())
        .map_err(|_| other())?;
    let own: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    if !own.contains(&address.ip()) {
        return Err(other());
    }
    let path = path.split('#').next().unwrap_or_default();
    if path.contains(|c: char| c.is_ascii_control() || c == ' ') {
        return Err(other());
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(Loopback {
        address,
        host: host.to_owned(),
        path: format!("{slash}{path}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literal_addresses_of_this_machine_are_connected() {
        for (url, host, path) in [
            (
                "http://127.0.0.1:3000/mcp?a=1#b",
                "127.0.0.1:3000",
                "/mcp?a=1",
            ),
            ("http://[::1]:3000", "[::1]:3000", "/"),
            ("http://127.0.0.1/sse", "127.0.0.1", "/sse"),
        ] {
            let parsed = loopback(url).unwrap();
            assert_eq!((&*parsed.host, &*parsed.path), (host, path), "{url}");
        }
        for url in [
            "https://127.0.0.1/",
            "http://localhost:3000/",
            "http://127.0.0.1.example.com/",
            "http://127.0.0.1@example.com/",
            "http://user@127.0.0.1/",
            "http://127.0.0.2/",
            "http://0.0.0.0/",
            "http://[::]/",
            "http://2130706433/",
            "http://127.0.0.1:x/",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/a\r\nb",
        ] {
            assert!(loopback(url).is_err(), "{url}");
        }
    }
}
