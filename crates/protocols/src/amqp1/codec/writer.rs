//! Writes composite values: a list with a descriptor, whose trailing nulls are left out (part 1,
//! section 1.4).

/// A list that is being written. Its fields come in the order of the specification; [`List::end`]
/// is last.
#[derive(Debug)]
pub struct List {
    /// Place of its size.
    at: usize,
    count: u32,
    /// Nulls that are written only if something follows them.
    nulls: u32,
}

impl List {
    /// Begins a list with this descriptor.
    pub fn begin(code: u8, out: &mut Vec<u8>) -> List {
        out.extend_from_slice(&[0x00, 0x53, code, 0xC0, 0, 0]);
        List { at: out.len() - 2, count: 0, nulls: 0 }
    }

    /// Begins the next field.
    fn field<'v>(&mut self, out: &'v mut Vec<u8>) -> &'v mut Vec<u8> {
        for _ in 0..self.nulls {
            out.push(0x40);
        }
        self.count += self.nulls + 1;
        self.nulls = 0;
        out
    }

    /// A field without a value.
    pub fn null(&mut self) {
        self.nulls += 1;
    }

    /// Any field: `put` writes its value.
    pub fn value(&mut self, out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
        put(self.field(out));
    }

    /// A `boolean` whose default is false.
    pub fn flag(&mut self, value: bool, out: &mut Vec<u8>) {
        match value {
            true => self.boolean(true, out),
            false => self.null(),
        }
    }

    /// A `boolean`.
    pub fn boolean(&mut self, value: bool, out: &mut Vec<u8>) {
        self.field(out).push(if value { 0x41 } else { 0x42 });
    }

    /// A `ubyte`.
    pub fn ubyte(&mut self, value: u8, out: &mut Vec<u8>) {
        self.field(out).extend_from_slice(&[0x50, value]);
    }

    /// A `ushort`.
    pub fn ushort(&mut self, value: u16, out: &mut Vec<u8>) {
        let out = self.field(out);
        out.push(0x60);
        out.extend_from_slice(&value.to_be_bytes());
    }

    /// A `uint`, in its shortest form.
    pub fn uint(&mut self, value: u32, out: &mut Vec<u8>) {
        let out = self.field(out);
        match u8::try_from(value) {
            Ok(0) => out.push(0x43),
            Ok(small) => out.extend_from_slice(&[0x52, small]),
            Err(_) => {
                out.push(0x70);
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
    }

    /// A `uint`, or null.
    pub fn optional_uint(&mut self, value: Option<u32>, out: &mut Vec<u8>) {
        match value {
            Some(value) => self.uint(value, out),
            None => self.null(),
        }
    }

    /// A `ulong`.
    pub fn ulong(&mut self, value: u64, out: &mut Vec<u8>) {
        let out = self.field(out);
        out.push(0x80);
        out.extend_from_slice(&value.to_be_bytes());
    }

    /// A `string`.
    pub fn text(&mut self, value: &str, out: &mut Vec<u8>) {
        put_sized(0xA1, value.as_bytes(), self.field(out));
    }

    /// A `string`, or null.
    pub fn optional_text(&mut self, value: Option<&str>, out: &mut Vec<u8>) {
        match value {
            Some(value) => self.text(value, out),
            None => self.null(),
        }
    }

    /// A `symbol`.
    pub fn symbol(&mut self, value: &str, out: &mut Vec<u8>) {
        put_sized(0xA3, value.as_bytes(), self.field(out));
    }

    /// A `binary`.
    pub fn binary(&mut self, value: &[u8], out: &mut Vec<u8>) {
        put_sized(0xA0, value, self.field(out));
    }

    /// Ends the list.
    pub fn end(self, out: &mut Vec<u8>) {
        let size = out.len() - self.at - 1;
        match (self.count, u8::try_from(size)) {
            (0, _) => {
                out.truncate(self.at - 1);
                out.push(0x45);
            }
            (count @ ..=0xFF, Ok(size)) => {
                out[self.at] = size;
                out[self.at + 1] = count as u8;
            }
            (count, _) => {
                let mut head = [0xD0, 0, 0, 0, 0, 0, 0, 0, 0];
                head[1..5].copy_from_slice(&(size as u32 + 3).to_be_bytes());
                head[5..].copy_from_slice(&count.to_be_bytes());
                out.splice(self.at - 1..self.at + 2, head);
            }
        }
    }
}

/// A value of variable length; `short` is its constructor for at most 255 bytes.
pub(super) fn put_sized(short: u8, value: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(value.len()) {
        Ok(size) => out.extend_from_slice(&[short, size]),
        Err(_) => {
            out.push(short + 0x10);
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(value);
}
