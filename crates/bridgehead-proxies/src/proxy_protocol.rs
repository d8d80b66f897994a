//! What a proxy that passes bytes on says before them: the PROXY protocol, versions 1 and 2.
//!
//! Pure: bytes in, what they say out. Who may say it, and for how long, is the network's. The text is HAProxy's
//! proxy-protocol.txt, sections 2.1 and 2.2.
//!
//! Invariant: never is a byte asked for that could be behind the header, so none of it is ever taken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Both versions are at least as long: `PROXY UNKNOWN\r\n`.
const SHORTEST: usize = 15;

/// Of version 1, with its line end: the longest that its text allows.
const LONGEST_LINE: usize = 107;

/// Of version 2, in front of what its length counts.
const FIXED: usize = 16;

/// Of version 2, behind that: some certificates fit, and nobody can fill memory with it.
const LARGEST: usize = 4096;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// How far a header is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// At least so many bytes are missing, and all of them are its own.
    Missing(usize),
    /// All of it has come.
    Whole(Said),
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The connection is the proxy's own, or of a kind that has no address here.
    Nothing,
    /// Whose connection it is, and to where.
    Ends {
        /// Who connected to the proxy.
        client: SocketAddr,
        /// Where to.
        server: SocketAddr,
    },
    /// It came to the proxy by a Unix socket.
    Unix,
}

/// Why it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Something else has come.
    #[error("it does not begin with a PROXY header")]
    Absent,
    /// It takes more than it may.
    #[error("its PROXY header is longer than it may be")]
    Long,
    /// It began as one.
    #[error("its PROXY header is not as the protocol has it")]
    Garbled,
}

/// Reads what has come so far.
///
/// # Errors
///
/// When no PROXY header begins so.
pub fn read(bytes: &[u8]) -> Result<Header, Malformed> {
    let line = b"PROXY ";
    let begun = |whole: &[u8]| bytes.iter().zip(whole).all(|(came, due)| came == due);
    if bytes.is_empty() {
        Ok(Header::Missing(SHORTEST))
    } else if begun(SIGNATURE) {
        if bytes.len() < FIXED { Ok(Header::Missing(FIXED - bytes.len())) } else { read_binary(bytes) }
    } else if begun(line) {
        if bytes.len() < SHORTEST { Ok(Header::Missing(SHORTEST - bytes.len())) } else { read_line(bytes) }
    } else {
        Err(Malformed::Absent)
    }
}

/// Version 1: `PROXY TCP4 1.2.3.4 5.6.7.8 1234 80\r\n`.
fn read_line(bytes: &[u8]) -> Result<Header, Malformed> {
    let Some(line) = bytes.strip_suffix(b"\r\n") else {
        return match missing_of_line(bytes)? {
            missing if bytes.len() + missing > LONGEST_LINE => Err(Malformed::Long),
            missing => Ok(Header::Missing(missing)),
        };
    };
    if is_unknown(line) {
        return Ok(Header::Whole(Said::Nothing));
    }
    let line = std::str::from_utf8(line).map_err(|_| Malformed::Garbled)?;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        [_, family @ ("TCP4" | "TCP6"), from, to, from_port, to_port] => {
            let address = |host: &str, digits: &str| {
                let host = match family {
                    "TCP4" => host.parse().map(IpAddr::V4).ok(),
                    _ => host.parse().map(IpAddr::V6).ok(),
                };
                Some(SocketAddr::new(host?, port(digits)?))
            };
            let client = address(from, from_port).ok_or(Malformed::Garbled)?;
            let server = address(to, to_port).ok_or(Malformed::Garbled)?;
            Ok(Header::Whole(Said::Ends { client, server }))
        }
        _ => Err(Malformed::Garbled),
    }
}

/// Whether it tells of no client: whatever follows is ignored then, as the text of the protocol wants it.
fn is_unknown(line: &[u8]) -> bool {
    line.strip_prefix(b"PROXY UNKNOWN").is_some_and(|rest| matches!(rest.first(), None | Some(b' ')))
}

/// How many bytes a line that has not ended yet is short of, at least: it has six words, or its second is `UNKNOWN`.
fn missing_of_line(bytes: &[u8]) -> Result<usize, Malformed> {
    let open = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let is_ignored = is_unknown(open);
    if open.iter().any(|byte| matches!(byte, b'\r' | b'\n') || (*byte == 0 && !is_ignored)) {
        return Err(Malformed::Garbled);
    }
    let end = 2 - (bytes.len() - open.len());
    let words = if open.starts_with(b"PROXY UNKNOWN") { 0 } else { 6 };
    let blanks = open.iter().filter(|byte| **byte == b' ').count();
    // A blank and a letter each.
    let due: usize = 2 * usize::saturating_sub(words, 1 + blanks);
    if due > 0 && open.len() < bytes.len() { Err(Malformed::Garbled) } else { Ok(due + end) }
}

/// Digits as the text has them: no sign, no zero in front.
fn port(digits: &str) -> Option<u16> {
    let plain =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    plain.then(|| digits.parse().ok()).flatten()
}

/// Version 2: a length, addresses, and values of many types, of which none is of use here.
fn read_binary(bytes: &[u8]) -> Result<Header, Malformed> {
    let (fixed, rest) = bytes.split_at(FIXED);
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > LARGEST {
        return Err(Malformed::Long);
    }
    if rest.len() < length {
        return Ok(Header::Missing(length - rest.len()));
    }
    let said = match (fixed[12], fixed[13]) {
        // LOCAL: whatever stands in it is to be passed over.
        (0x20, _) => Said::Nothing,
        (0x21, 0x11) => ends(&rest[..length], v4)?,
        (0x21, 0x21) => ends(&rest[..length], v6)?,
        (0x21, 0x31) => {
            values(rest[..length].get(UNIX_ADDRESSES..).ok_or(Malformed::Garbled)?)?;
            Said::Unix
        }
        // UNSPEC, and datagrams, which have no connection. Their values begin where nobody knows.
        (0x21, 0x00 | 0x12 | 0x22 | 0x32) => Said::Nothing,
        _ => return Err(Malformed::Garbled),
    };
    Ok(Header::Whole(said))
}

/// Two paths.
const UNIX_ADDRESSES: usize = 216;

/// Reads one address.
type Address<const LENGTH: usize> = fn([u8; LENGTH]) -> IpAddr;

fn v4(octets: [u8; 4]) -> IpAddr {
    Ipv4Addr::from(octets).into()
}

fn v6(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).into()
}

/// Two addresses, two ports, and values.
fn ends<const LENGTH: usize>(bytes: &[u8], address: Address<LENGTH>) -> Result<Said, Malformed> {
    let read = || {
        let (from, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let (to, rest) = rest.split_first_chunk::<LENGTH>()?;
        let (from_port, rest) = rest.split_first_chunk::<2>()?;
        let (to_port, rest) = rest.split_first_chunk::<2>()?;
        let client = SocketAddr::new(address(*from), u16::from_be_bytes(*from_port));
        let server = SocketAddr::new(address(*to), u16::from_be_bytes(*to_port));
        Some((Said::Ends { client, server }, rest))
    };
    let (said, rest) = read().ok_or(Malformed::Garbled)?;
    values(rest)?;
    Ok(said)
}

/// Each has a type, a length and so many bytes. None is read, but one that reaches beyond the header is no value.
fn values(mut rest: &[u8]) -> Result<(), Malformed> {
    while let Some((&[_, high, low], behind)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        rest = behind.get(length..).ok_or(Malformed::Garbled)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(Malformed::Garbled) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn ends_at(client: &str, server: &str) -> Said {
        Said::Ends { client: client.parse().expect("literal"), server: server.parse().expect("literal") }
    }

    /// A header that came whole, in a way that shows where it ends: nothing behind it was asked for.
    fn whole(bytes: &[u8]) -> Result<(Said, usize), Malformed> {
        let mut came = 0;
        loop {
            match read(&bytes[..came])? {
                Header::Whole(said) => return Ok((said, came)),
                Header::Missing(count) => {
                    assert!(count > 0);
                    came += count;
                    if came > bytes.len() {
                        return Err(Malformed::Absent);
                    }
                }
            }
        }
    }

    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("a short one");
        [&SIGNATURE[..], &[command, family], &length.to_be_bytes(), rest].concat()
    }

    const FOUR: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 0x04, 0xd2, 0x00, 0x50];

    fn headers() -> Vec<(Vec<u8>, Said)> {
        let six = [&[0; 15][..], &[1], &[0; 15], &[2], &[0x04, 0xd2, 0x00, 0x50]].concat();
        let unix = [b'x'; UNIX_ADDRESSES];
        let four = ends_at("1.2.3.4:1234", "5.6.7.8:80");
        let longest = format!("PROXY UNKNOWN {}\r\n", "f".repeat(LONGEST_LINE - 16));
        vec![
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234 80\r\n".to_vec(), four.clone()),
            (b"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n".to_vec(), ends_at("0.0.0.0:0", "0.0.0.0:0")),
            (b"PROXY TCP6 ::1 ::2 1234 80\r\n".to_vec(), ends_at("[::1]:1234", "[::2]:80")),
            (b"PROXY TCP6 :: :: 0 0\r\n".to_vec(), ends_at("[::]:0", "[::]:0")),
            (b"PROXY UNKNOWN\r\n".to_vec(), Said::Nothing),
            (b"PROXY UNKNOWN ffff::1 anything 1\r\n".to_vec(), Said::Nothing),
            (b"PROXY UNKNOWN \0\x01\xff\r\n".to_vec(), Said::Nothing),
            (longest.into_bytes(), Said::Nothing),
            (binary(0x21, 0x11, FOUR), four.clone()),
            (binary(0x21, 0x11, &[FOUR, &[0x20, 0, 2, 9, 9], &[0xee, 0, 0]].concat()), four),
            (binary(0x21, 0x21, &six), ends_at("[::1]:1234", "[::2]:80")),
            (binary(0x21, 0x31, &unix), Said::Unix),
            (binary(0x21, 0x31, &[&unix[..], &[4, 0, 1, 0]].concat()), Said::Unix),
            (binary(0x20, 0x00, &[]), Said::Nothing),
            (binary(0x20, 0x11, &[1, 2, 3]), Said::Nothing),
            // A value of 255 bytes, of which none is there.
            (binary(0x20, 0x00, &[4, 0, 255]), Said::Nothing),
            (binary(0x21, 0x00, &[4, 0, 255]), Said::Nothing),
            (binary(0x21, 0x00, &[9; LARGEST]), Said::Nothing),
            (binary(0x21, 0x12, FOUR), Said::Nothing),
        ]
    }

    #[test]
    fn a_header_is_read_to_its_end_and_no_further() {
        for (header, said) in headers() {
            let followed = [&header[..], b"GET / HTTP/1.1\r\n\r\n"].concat();
            assert_eq!(whole(&followed), Ok((said, header.len())), "{:?}", String::from_utf8_lossy(&header));
        }
    }

    #[test]
    fn a_part_of_a_header_is_no_header_and_no_fault() {
        for (header, _) in headers() {
            for cut in 0..header.len() {
                let Ok(Header::Missing(count)) = read(&header[..cut]) else { panic!("{cut} of {header:x?}") };
                assert!(0 < count && count <= header.len() - cut, "{cut} of {header:x?}");
            }
        }
    }

    #[test]
    fn what_is_no_header_is_told_from_one() {
        let long = format!("PROXY UNKNOWN {}\r\n", "f".repeat(LONGEST_LINE - 15));
        let cases: &[(&[u8], Malformed)] = &[
            (b"GET / HTTP/1.1\r\nHost: test\r\n\r\n", Malformed::Absent),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaa", Malformed::Absent),
            (b"proxy TCP4 1.2.3.4 5.6.7.8 1234 80\r\n", Malformed::Absent),
            (b"\r\n\r\n\0\r\nQUIT\r aaaaaaaaaaaaaa", Malformed::Absent),
            (long.as_bytes(), Malformed::Long),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234 80\n              \r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234  80\r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234 80 \r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234\r\n aaaaaaa\r\n", Malformed::Garbled),
            (b"PROXY TCP4 01.2.3.4 5.6.7.8 1234 80\r\n", Malformed::Garbled),
            (b"PROXY TCP4 ::1 ::2 1234 80\r\n", Malformed::Garbled),
            (b"PROXY TCP6 1.2.3.4 5.6.7.8 1234 80\r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 01234 80\r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 +1234 80\r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 65536 80\r\n", Malformed::Garbled),
            (b"PROXY UDP4 1.2.3.4 5.6.7.8 1234 80\r\n", Malformed::Garbled),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1234 80\0\r\n", Malformed::Garbled),
            (b"PROXY UNKNOWN a\nb\r\n", Malformed::Garbled),
            (b"PROXY UNKNOWNS 1.2.3.4 5.6.7.8 12 80\r\n", Malformed::Garbled),
        ];
        for (bytes, expected) in cases {
            let shown = String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(whole(bytes), Err(*expected), "{shown:?}");
        }
        let largest = [&binary(0x21, 0x00, &[])[..14], &4097_u16.to_be_bytes()].concat();
        assert_eq!(read(&largest), Err(Malformed::Long));
        for (command, family, rest) in [
            (0x22, 0x11, FOUR),
            (0x11, 0x11, FOUR),
            (0x21, 0x13, FOUR),
            (0x21, 0x41, FOUR),
            (0x21, 0x11, &FOUR[..11]),
            (0x21, 0x21, FOUR),
            (0x21, 0x31, &[0; 215]),
            (0x21, 0x11, &[FOUR, &[4]].concat()),
            (0x21, 0x11, &[FOUR, &[4, 0]].concat()),
            (0x21, 0x11, &[FOUR, &[4, 0, 2, 0]].concat()),
            (0x21, 0x11, &[FOUR, &[4, 0xff, 0xff, 0]].concat()),
        ] {
            let bytes = binary(command, family, rest);
            assert_eq!(read(&bytes), Err(Malformed::Garbled), "{bytes:x?}");
        }
    }

    fn ends() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
        let four = any::<([u8; 4], [u8; 4], u16, u16)>()
            .prop_map(|(from, to, one, other)| ((from, one).into(), (to, other).into()));
        let six = any::<([u16; 8], [u16; 8], u16, u16)>()
            .prop_map(|(from, to, one, other)| ((from, one).into(), (to, other).into()));
        prop_oneof![four, six]
    }

    fn as_line(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
        let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
        let (from, to) = (client.ip(), server.ip());
        format!("PROXY {family} {from} {to} {} {}\r\n", client.port(), server.port()).into_bytes()
    }

    fn as_binary(client: SocketAddr, server: SocketAddr, values: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let octets = |address: SocketAddr| match address.ip() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let ports = [client.port().to_be_bytes(), server.port().to_be_bytes()].concat();
        let mut rest = [octets(client), octets(server), ports].concat();
        for (kind, value) in values {
            rest.push(*kind);
            rest.extend(u16::try_from(value.len()).expect("a short one").to_be_bytes());
            rest.extend(value);
        }
        binary(0x21, if client.is_ipv4() { 0x11 } else { 0x21 }, &rest)
    }

    proptest! {
        #[test]
        fn any_two_ends_are_read_by_either_version_and_nothing_behind_them(
            (client, server) in ends(),
            values in vec((any::<u8>(), vec(any::<u8>(), 0..40)), 0..5),
            behind in vec(any::<u8>(), 0..64),
        ) {
            for header in [as_line(client, server), as_binary(client, server, &values)] {
                let bytes = [&header[..], &behind].concat();
                prop_assert_eq!(whole(&bytes), Ok((Said::Ends { client, server }, header.len())));
            }
        }

        #[test]
        fn any_bytes_are_a_header_or_none(
            begins in prop_oneof![Just(&b""[..]), Just(&b"PROXY "[..]), Just(&SIGNATURE[..])],
            rest in vec(any::<u8>(), 0..200),
        ) {
            let bytes = [begins, &rest].concat();
            if let Ok((_, length)) = whole(&bytes) {
                prop_assert!(length <= bytes.len());
                // What stands behind it changes nothing.
                prop_assert_eq!(whole(&bytes[..length]), whole(&bytes));
            }
        }
    }
}
