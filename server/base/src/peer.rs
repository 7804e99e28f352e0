//! The user of a connection. All users of the machine can connect to loopback.

use std::net::SocketAddr;

/// Returns whether the other end of a connection is a process of the same user. If the system does
/// not say so, it is not. On systems other than Linux, only a secret protects a listener.
pub fn is_same_user(own: SocketAddr, peer: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    return linux::is_same_user(own, peer);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (own, peer);
        true
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, net::SocketAddr};

    /// Tables of the sockets, for IPv4 and for programs that use IPv6 for both.
    const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

    pub(super) fn is_same_user(own: SocketAddr, peer: SocketAddr) -> bool {
        let user = rustix::process::geteuid().as_raw();
        let tables = TABLES
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok());
        tables
            .flat_map(|table| user_of(&table, peer, own))
            .any(|found| found == user)
    }

    /// Returns the user of the socket at `local` that is connected to `remote`.
    pub(super) fn user_of(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let [local, remote] = [local, remote].map(written);
        table.lines().skip(1).find_map(|line| {
            let mut columns = line.split_ascii_whitespace().skip(1);
            let is_found = columns.next()?.ends_with(&local) && columns.next()?.ends_with(&remote);
            // After state, queues, timer and retransmissions.
            columns.nth(4)?.parse().ok().filter(|_| is_found)
        })
    }

    /// Returns an address of IPv4 as it ends in the tables: the bytes in the order of the machine.
    fn written(address: SocketAddr) -> String {
        let ip = match address {
            SocketAddr::V4(address) => u32::from_ne_bytes(address.ip().octets()),
            SocketAddr::V6(_) => 0,
        };
        format!("{ip:08X}:{:04X}", address.port())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_user_of_the_other_end_is_found() {
            let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                 \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0\n\
                 \x20  1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 30 10 -1\n\
                 \x20  2: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 13 1 0 20 4 30 10 -1\n";
            let own = "127.0.0.1:8080".parse().unwrap();
            let user = |peer: &str| user_of(table, peer.parse().unwrap(), own);
            assert_eq!(user("127.0.0.1:50000"), Some(1000));
            assert_eq!(user("127.0.0.1:50001"), Some(1001));
            assert_eq!(user("127.0.0.1:50002"), None);
        }
    }
}
