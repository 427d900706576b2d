//! Lines of a file, one at a time, in a buffer that is reused.

use super::LONGEST;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

pub struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    /// The last line had no end: the log was cut there.
    cut: bool,
    /// Whether lines end with `\r\n`, as the first one does. In other files a `\r` belongs to a statement.
    returns: bool,
}

impl Lines {
    pub fn new(file: File) -> Lines {
        Lines {
            reader: BufReader::with_capacity(1 << 20, file),
            line: Vec::new(),
            number: 0,
            cut: false,
            returns: false,
        }
    }

    /// The next line without its end, and its number, from 1; None at the end of the file. A line that is longer than any
    /// statement is cut.
    pub fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.line.clear();
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                if self.line.is_empty() {
                    return Ok(None);
                }
                self.cut = true;
                break;
            }
            let end = memchr::memchr(b'\n', buffer);
            let length = end.map_or(buffer.len(), |end| end);
            let room = (LONGEST + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&buffer[..length.min(room)]);
            self.reader.consume(end.map_or(length, |end| end + 1));
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        let returns = self.line.last() == Some(&b'\r');
        self.returns |= returns && self.number == 1;
        if returns && self.returns {
            self.line.pop();
        }
        Ok(Some((self.number, &self.line)))
    }

    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

/// A statement that grows line by line.
#[derive(Default)]
pub struct Growing {
    pub text: Vec<u8>,
    pub too_long: bool,
}

impl Growing {
    pub fn begin(&mut self, text: &[u8]) {
        self.text.clear();
        self.text.extend_from_slice(text);
        self.too_long = text.len() > LONGEST;
    }

    pub fn add_line(&mut self, line: &[u8]) {
        if self.text.len() + line.len() >= LONGEST {
            self.too_long = true;
            return;
        }
        self.text.push(b'\n');
        self.text.extend_from_slice(line);
    }
}
