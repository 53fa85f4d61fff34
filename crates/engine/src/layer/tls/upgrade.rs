//! TLS that begins behind the first line of the server, which is in the clear: the server speaks
//! first, and says in that line that TLS follows (NATS).

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::content::StreamCounts;

use crate::layer::session::{Begin, Session};

/// A client's end.
pub(super) enum ClientUpgrade<S> {
    /// The line is not all there.
    Clear { line: Vec<u8>, begin: Begin<S> },
    /// The line, until the protocol inside may have it, and the session.
    Secure { line: Vec<u8>, session: S },
}

impl<S> ClientUpgrade<S> {
    pub(super) fn new(begin: Begin<S>) -> ClientUpgrade<S> {
        ClientUpgrade::Clear { line: Vec::new(), begin }
    }

    fn session(&self) -> Option<&S> {
        match self {
            ClientUpgrade::Clear { .. } => None,
            ClientUpgrade::Secure { session, .. } => Some(session),
        }
    }
}

impl<S: Session> Session for ClientUpgrade<S> {
    fn feed(
        &mut self,
        input: &[u8],
        now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let mut input = input;
        if let ClientUpgrade::Clear { line, begin } = self {
            let end = input.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            line.extend_from_slice(&input[..end.unwrap_or(input.len())]);
            let Some(end) = end else {
                return match line.len() < LINE_BYTES_MAX {
                    true => Ok(false),
                    false => Err(Fault::OtherProtocol("its first line does not end".to_owned())),
                };
            };
            let (session, line) = (begin(now)?, std::mem::take(line));
            *self = ClientUpgrade::Secure { line, session };
            input = &input[end..];
        }
        let ClientUpgrade::Secure { line, session } = self else { return Ok(false) };
        let start = plain.len();
        let has_finished = session.feed(input, now, plain, out)?;
        if has_finished {
            plain.splice(start..start, std::mem::take(line));
        }
        Ok(has_finished)
    }

    fn say(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            ClientUpgrade::Clear { .. } => Ok(()),
            ClientUpgrade::Secure { session, .. } => session.say(plain, out),
        }
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        if let ClientUpgrade::Secure { session, .. } = self {
            session.goodbye(out);
        }
    }

    fn stands(&self) -> bool {
        self.session().is_some_and(S::stands)
    }

    fn has_peer_closed(&self) -> bool {
        self.session().is_some_and(S::has_peer_closed)
    }

    fn added(&self) -> StreamCounts {
        self.session().map_or_else(StreamCounts::default, S::added)
    }

    fn cut_off(&self) -> Fault {
        match self.session() {
            Some(session) => session.cut_off(),
            None => Fault::Ended("it closed the connection instead of its first line".to_owned()),
        }
    }
}

/// A server's end: what it says first is in the clear.
pub(super) struct ServerUpgrade<S> {
    session: S,
    is_clear: bool,
}

impl<S> ServerUpgrade<S> {
    pub(super) fn new(session: S) -> ServerUpgrade<S> {
        ServerUpgrade { session, is_clear: true }
    }
}

impl<S: Session> Session for ServerUpgrade<S> {
    fn feed(
        &mut self,
        input: &[u8],
        now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        self.session.feed(input, now, plain, out)
    }

    fn say(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if std::mem::take(&mut self.is_clear) {
            out.extend_from_slice(plain);
            return Ok(());
        }
        self.session.say(plain, out)
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        self.session.goodbye(out);
    }

    fn stands(&self) -> bool {
        self.session.stands()
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn has_peer_closed(&self) -> bool {
        self.session.has_peer_closed()
    }

    fn added(&self) -> StreamCounts {
        self.session.added()
    }

    fn cut_off(&self) -> Fault {
        self.session.cut_off()
    }
}

/// Longest first line.
const LINE_BYTES_MAX: usize = 1 << 16;
