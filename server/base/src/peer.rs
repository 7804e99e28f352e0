//! The user of a connection. All users of the machine can connect to loopback.

use std::{net::SocketAddr, path::PathBuf};

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

/// Returns the current folder of the process at the other end of a connection. `None` if the system does not say so.
pub fn folder(own: SocketAddr, peer: SocketAddr) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    return linux::folder(own, peer);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (own, peer);
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs,
        net::SocketAddr,
        path::{Path, PathBuf},
    };

    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    };

    /// Tables of the sockets, for IPv4 and for programs that use IPv6 for both. To read them takes the
    /// kernel milliseconds, so they are read only where it does not answer directly.
    const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    /// Length of a request about one socket, and that of the answer without attributes.
    const REQUEST: usize = 72;
    const ANSWER: usize = 88;

    /// A socket, as the kernel describes it.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Socket {
        user: u32,
        inode: u64,
    }

    pub(super) fn is_same_user(own: SocketAddr, peer: SocketAddr) -> bool {
        let user = rustix::process::geteuid().as_raw();
        other_end(own, peer).is_some_and(|socket| socket.user == user)
    }

    pub(super) fn folder(own: SocketAddr, peer: SocketAddr) -> Option<PathBuf> {
        let link = format!("socket:[{}]", other_end(own, peer)?.inode);
        let has_socket = |process: &Path| {
            let files = fs::read_dir(process.join("fd")).into_iter().flatten();
            let mut links = files
                .flatten()
                .filter_map(|file| fs::read_link(file.path()).ok());
            links.any(|found| found.as_os_str() == link.as_str())
        };
        let processes = fs::read_dir("/proc")
            .ok()?
            .flatten()
            .map(|entry| entry.path());
        // Files of other users and of programs with more rights cannot be read.
        let process = processes.into_iter().find(|process| has_socket(process))?;
        fs::read_link(process.join("cwd")).ok()
    }

    fn other_end(own: SocketAddr, peer: SocketAddr) -> Option<Socket> {
        if let Some(socket) = ask_kernel(peer, own) {
            return Some(socket);
        }
        let mut tables = TABLES
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok());
        tables.find_map(|table| socket(&table, peer, own))
    }

    /// Asks for the socket at `local` that is connected to `remote`, by `sock_diag(7)`.
    pub(super) fn ask_kernel(local: SocketAddr, remote: SocketAddr) -> Option<Socket> {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (local, remote) else {
            return None;
        };
        let mut request = [0_u8; REQUEST];
        let mut put =
            |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &u32::try_from(REQUEST).ok()?.to_ne_bytes());
        // SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST; AF_INET, IPPROTO_TCP, all states.
        put(4, &20_u16.to_ne_bytes());
        put(6, &1_u16.to_ne_bytes());
        put(16, &[2, 6]);
        put(20, &[0xff; 4]);
        let mut id = [0_u8; 36];
        id[..2].copy_from_slice(&from.port().to_be_bytes());
        id[2..4].copy_from_slice(&to.port().to_be_bytes());
        id[4..8].copy_from_slice(&from.ip().octets());
        id[20..24].copy_from_slice(&to.ip().octets());
        put(24, &id);
        // No cookie.
        put(64, &[0xff; 8]);
        let (raw, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let kernel =
            socket_with(AddressFamily::NETLINK, raw, flags, Some(netlink::SOCK_DIAG)).ok()?;
        send(&kernel, &request, SendFlags::empty()).ok()?;
        let mut answer = [0_u8; 1024];
        let (_, length) = recv(&kernel, &mut answer, RecvFlags::empty()).ok()?;
        // An error is shorter, and a socket that listens has another id.
        let answer = answer.get(..length)?;
        let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
        (length >= ANSWER && answer.get(20..24)? == &id[..4]).then_some(())?;
        Some(Socket {
            user: number(80)?,
            inode: number(84)?.into(),
        })
    }

    /// Returns the socket at `local` that is connected to `remote`.
    pub(super) fn socket(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<Socket> {
        let [local, remote] = [local, remote].map(written);
        table.lines().skip(1).find_map(|line| {
            let mut columns = line.split_ascii_whitespace().skip(1);
            let is_found = columns.next()?.ends_with(&local) && columns.next()?.ends_with(&remote);
            // After state, queues, timer and retransmissions; a timeout is between them.
            let user = columns.nth(4)?.parse().ok().filter(|_| is_found)?;
            let inode = columns.nth(1)?.parse().ok()?;
            Some(Socket { user, inode })
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
            let found = |peer: &str| {
                let socket = socket(table, peer.parse().unwrap(), own)?;
                Some((socket.user, socket.inode))
            };
            assert_eq!(found("127.0.0.1:50000"), Some((1000, 12)));
            assert_eq!(found("127.0.0.1:50001"), Some((1001, 13)));
            assert_eq!(found("127.0.0.1:50002"), None);
        }

        #[test]
        fn the_folder_of_the_other_end_is_found() {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let own = listener.local_addr().unwrap();
            let stream = std::net::TcpStream::connect(own).unwrap();
            let (_accepted, peer) = listener.accept().unwrap();
            assert_eq!(folder(own, peer), std::env::current_dir().ok());
            // The tables say the same.
            let table = fs::read_to_string(TABLES[0]).unwrap();
            let asked = ask_kernel(peer, own);
            assert!(asked.is_some() && asked == socket(&table, peer, own));
            assert_eq!(ask_kernel("127.0.0.1:1".parse().unwrap(), own), None);
            drop(stream);
        }
    }
}
