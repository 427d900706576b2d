//! Where a request ends, for the protocols whose clients are tested with a scripted server.

/// How bytes become requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Arrays of bulk strings, as Redis clients send them.
    Resp,
    /// Lines; those of storage commands with their data block (text and meta protocol).
    Memcached,
    /// A head up to its empty line, and as many bytes as its `Content-Length` says.
    Http,
    /// As many bytes as the four in front say, most significant first.
    Length32,
    /// Lines.
    Lines,
    /// Whatever has arrived.
    Raw,
}

impl Framing {
    /// The length of the first whole request in `bytes`; None where it is not whole yet.
    pub fn request_length(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Framing::Resp => resp(bytes),
            Framing::Memcached => memcached(bytes),
            Framing::Http => http(bytes),
            Framing::Length32 => length_32(bytes),
            Framing::Lines => line_end(bytes, 0),
            Framing::Raw => (!bytes.is_empty()).then_some(bytes.len()),
        }
    }
}

/// Where the line that begins at `from` ends.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let newline = rest.iter().position(|byte| *byte == b'\n')?;
    Some(from + newline + 1)
}

/// A request that is no array counts as a line, so that the script sees it.
fn resp(bytes: &[u8]) -> Option<usize> {
    let mut position = line_end(bytes, 0)?;
    let count = number(bytes[..position].strip_prefix(b"*")).unwrap_or(0);
    for _ in 0..count {
        let end = line_end(bytes, position)?;
        let length = number(bytes[position..end].strip_prefix(b"$")).unwrap_or(0);
        position = end + length + 2;
    }
    (position <= bytes.len()).then_some(position)
}

fn http(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let lines = bytes[..head].split(|byte| *byte == b'\n');
    let length = lines.filter_map(|line| {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        is_length.then(|| number(Some(value[1..].trim_ascii())).unwrap_or(0))
    });
    let whole = head + length.sum::<usize>();
    (whole <= bytes.len()).then_some(whole)
}

fn length_32(bytes: &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    (rest.len() >= length).then_some(4 + length)
}

fn memcached(bytes: &[u8]) -> Option<usize> {
    let end = line_end(bytes, 0)?;
    let mut words = bytes[..end]
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let length = match words.next() {
        Some(b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas") => words.nth(3),
        Some(b"ms") => words.nth(1),
        _ => None,
    };
    let whole = match number(length) {
        Some(length) => end + length + 2,
        None => end,
    };
    (whole <= bytes.len()).then_some(whole)
}

fn number(digits: Option<&[u8]>) -> Option<usize> {
    std::str::from_utf8(digits?).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_framed(framing: Framing, request: &[u8]) {
        for cut in 0..request.len() {
            let found = framing.request_length(&request[..cut]);
            assert_eq!(found, None, "{} cut at {cut}", request.escape_ascii());
        }
        let mut two = request.to_vec();
        two.extend_from_slice(request);
        assert_eq!(framing.request_length(&two), Some(request.len()));
    }

    #[test]
    fn resp_requests_end_with_their_last_argument() {
        assert_framed(Framing::Resp, b"*1\r\n$4\r\nPING\r\n");
        assert_framed(
            Framing::Resp,
            b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n",
        );
    }

    #[test]
    fn http_requests_end_with_their_body() {
        assert_framed(Framing::Http, b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_framed(
            Framing::Http,
            b"PUT /a HTTP/1.1\r\nContent-Length: 5\r\n\r\na\r\n\r\n",
        );
    }

    #[test]
    fn requests_behind_a_length_end_where_it_says() {
        assert_framed(Framing::Length32, b"\0\0\0\x01\x01");
        assert_framed(Framing::Length32, b"\0\0\0\x05abcde");
    }

    #[test]
    fn memcached_requests_end_with_their_data() {
        assert_framed(Framing::Memcached, b"get a b\r\n");
        assert_framed(Framing::Memcached, b"set a 0 0 4\r\na\r\nb\r\n");
        assert_framed(Framing::Memcached, b"add a 0 0 0\r\n\r\n");
        assert_framed(Framing::Memcached, b"ms a 2 ME\r\nxy\r\n");
        assert_framed(Framing::Memcached, b"mg a v\r\n");
    }
}
