//! A protocol that is as small as one can be: messages as netstrings (`5:hello,`, by D. J.
//! Bernstein), each answered by an empty one.

mod client;
mod codec;
mod server;

use weigh_model::protocol::{
    Dial, Guarantee, Host, Invalid, Lifetime, Protocol, Scheme, Setting, Transport,
};
use weigh_model::tls;
use weigh_model::trial::Settings;
use weigh_model::{Pattern, Trial};

pub struct Netstring;

impl Protocol for Netstring {
    fn name(&self) -> &'static str {
        "netstring"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("netstring", 0)];
        SCHEMES
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Request, Pattern::Publish, Pattern::Batch, Pattern::Session, Pattern::Hold]
    }

    fn settings(&self) -> &'static [Setting] {
        static SETTINGS: &[Setting] = &tls::with::<{ tls::KEYS }>(&[], "");
        SETTINGS
    }

    fn guarantee(&self, _settings: &Settings) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let is_session = trial.load.pattern == Pattern::Session;
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: if is_session { Lifetime::PerMessage } else { Lifetime::Kept },
            confirms: true,
            is_answered: false,
            producer_of: None,
            make: Box::new(|_| Box::new(client::Client::default())),
        })
    }

    fn host(&self, _settings: &Settings) -> Result<Host, Invalid> {
        let make = |_| -> Box<dyn weigh_model::server::Server> { Box::<server::Shard>::default() };
        Ok(Host { transport: Transport::Stream, make: Box::new(make) })
    }
}
