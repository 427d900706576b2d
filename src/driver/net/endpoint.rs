//! The text of an endpoint, `scheme://user:password@host:port/path?name=value`, taken apart with the place of every
//! part, so that a fault points into the user's bytes.
//!
//! Which schemes, paths and names mean something is the driver's to say.

use crate::driver::spec::{Endpoint, EndpointFault, Transport};
use std::path::PathBuf;

/// An endpoint's parts, borrowed from its text and not yet decoded.
#[derive(Debug, PartialEq)]
pub struct Parts<'a> {
    text: &'a str,
    pub scheme: &'a str,
    /// What stands before the `@`: a user, and a password after a colon.
    pub user: Option<&'a str>,
    pub password: Option<&'a str>,
    /// Without the brackets of an IPv6 address; empty for unix sockets.
    pub host: &'a str,
    pub port: Option<u16>,
    /// From the slash on, without the query.
    pub path: &'a str,
    pub query: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    /// Takes `text` apart. Errors point at the byte range of the wrong part, with `example` as their help.
    pub fn of(text: &'a str, example: &str) -> Result<Parts<'a>, EndpointFault> {
        Parts::taken_apart(text).map_err(|fault| EndpointFault {
            help: example.to_owned(),
            ..fault
        })
    }

    fn taken_apart(text: &'a str) -> Result<Parts<'a>, EndpointFault> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| EndpointFault {
            start: 0,
            end: text.len(),
            message: "an endpoint begins with its scheme, as in `scheme://host:port`".to_owned(),
            help: String::new(),
        })?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, query),
            None => (rest, ""),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (host, port) = host_and_port(text, place)?;
        let (user, password) = match login.map(|login| login.split_once(':')) {
            Some(Some((user, password))) => (Some(user), Some(password)),
            Some(None) => (login, None),
            None => (None, None),
        };
        Ok(Parts {
            text,
            scheme,
            user,
            password,
            host,
            port,
            path,
            query: query
                .split('&')
                .filter(|pair| !pair.is_empty())
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .collect(),
        })
    }

    /// A fault at `part`, which must be borrowed from the endpoint's text.
    pub fn fault(&self, part: &str, message: impl Into<String>, help: &str) -> EndpointFault {
        fault_at(self.text, part, message.into(), help)
    }

    /// A part without its percent codes; none where it is empty.
    pub fn decoded(&self, part: Option<&str>) -> Result<Option<String>, EndpointFault> {
        match part {
            None | Some("") => Ok(None),
            Some(part) => match decode(part) {
                Some(text) => Ok(Some(text)),
                None => Err(self.fault(part, "a wrong percent code", "")),
            },
        }
    }

    /// The fault of a name in the query that the driver does not know.
    pub fn meaningless(&self, name: &str, help: &str) -> EndpointFault {
        let message = format!("`{name}` means nothing in an endpoint");
        self.fault(name, message, help)
    }

    /// The endpoint as TCP; `default_port` where it says none. A missing host is a fault.
    pub fn tcp(&self, default_port: u16) -> Result<Endpoint, EndpointFault> {
        if self.host.is_empty() {
            let help = format!("{}://127.0.0.1:{default_port}", self.scheme);
            return Err(self.fault(self.text, "the endpoint has no host", &help));
        }
        let port = self.port.unwrap_or(default_port);
        let label = if self.host.contains(':') {
            format!("[{}]:{port}", self.host)
        } else {
            format!("{}:{port}", self.host)
        };
        Ok(Endpoint {
            text: self.text.to_owned(),
            label,
            transport: Transport::Tcp {
                host: self.host.to_owned(),
                port,
                addresses: Vec::new(),
            },
        })
    }

    /// The endpoint as a unix socket, whose path is absolute.
    pub fn unix(&self) -> Result<Endpoint, EndpointFault> {
        if !self.host.is_empty() || self.path.len() < 2 {
            let help = format!("{}:///run/server.sock", self.scheme);
            return Err(self.fault(
                self.text,
                "a unix socket is given by its absolute path, after three slashes",
                &help,
            ));
        }
        let path = decode(self.path)
            .ok_or_else(|| self.fault(self.path, "the path has a wrong percent code", ""))?;
        Ok(Endpoint {
            text: self.text.to_owned(),
            label: path.clone(),
            transport: Transport::Unix {
                path: PathBuf::from(path),
            },
        })
    }
}

fn fault_at(text: &str, part: &str, message: String, help: &str) -> EndpointFault {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let start = start.min(text.len());
    EndpointFault {
        start,
        end: (start + part.len()).min(text.len()),
        message,
        help: help.to_owned(),
    }
}

fn host_and_port<'a>(
    text: &'a str,
    place: &'a str,
) -> Result<(&'a str, Option<u16>), EndpointFault> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(|| {
                let message = "the bracket of the IPv6 address is not closed".to_owned();
                fault_at(text, place, message, "")
            })?;
            (host, after.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    match port.map(str::parse::<u16>) {
        None => Ok((host, None)),
        Some(Ok(number)) if number > 0 => Ok((host, Some(number))),
        Some(_) => {
            let part = port.unwrap_or_default();
            let message = format!("`{part}` is no port: a number from 1 to 65535");
            Err(fault_at(text, part, message, ""))
        }
    }
}

/// Undoes percent codes; None where one is wrong or what comes out is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found() {
        let parts = Parts::of("redis://me:p%40ss@db1.example:7001/3?a=b&c", "x://host").unwrap();
        assert_eq!(parts.scheme, "redis");
        assert_eq!((parts.user, parts.password), (Some("me"), Some("p%40ss")));
        assert_eq!((parts.host, parts.port), ("db1.example", Some(7001)));
        assert_eq!(parts.path, "/3");
        assert_eq!(parts.query, [("a", "b"), ("c", "")]);
        assert_eq!(decode("p%40ss").as_deref(), Some("p@ss"));
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let endpoint = Parts::of("x://[::1]:90", "x://host")
            .unwrap()
            .tcp(1)
            .unwrap();
        assert_eq!(endpoint.label, "[::1]:90");
        assert!(Parts::of("x://[::1:90", "x://host").is_err());
    }

    #[test]
    fn a_password_with_an_at_sign_does_not_end_early() {
        let parts = Parts::of("x://:a@b@host", "x://host").unwrap();
        assert_eq!((parts.password, parts.host), (Some("a@b"), "host"));
    }

    #[test]
    fn a_wrong_port_is_pointed_at() {
        let fault = Parts::of("redis://host:70000/1", "x://host").unwrap_err();
        assert_eq!((fault.start, fault.end), (13, 18));
        assert!(Parts::of("redis://host:0", "x://host").is_err());
        assert!(Parts::of("redis://host:", "x://host").is_err());
    }

    #[test]
    fn the_label_holds_no_secret() {
        let endpoint = Parts::of("redis://u:secret@h:1", "x://host")
            .unwrap()
            .tcp(1)
            .unwrap();
        assert_eq!(endpoint.label, "h:1");
    }

    #[test]
    fn a_unix_socket_needs_a_path_and_no_host() {
        let endpoint = Parts::of("unix:///run/a%20b.sock", "x://host")
            .unwrap()
            .unix()
            .unwrap();
        assert_eq!(endpoint.label, "/run/a b.sock");
        assert!(
            Parts::of("unix://run/a.sock", "x://host")
                .unwrap()
                .unix()
                .is_err()
        );
        assert!(
            Parts::of("unix:///a%zz", "x://host")
                .unwrap()
                .unix()
                .is_err()
        );
    }

    #[test]
    fn a_text_without_scheme_is_refused() {
        assert!(Parts::of("127.0.0.1:6379", "x://host").is_err());
    }
}
