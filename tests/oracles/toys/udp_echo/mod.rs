//! Messages as datagrams, each sent back: a number, then the body. With `retransmit` a message is
//! sent again until its echo comes.

mod client;
mod codec;
mod server;

use weigh_model::protocol::{
    Dial, Guarantee, Host, Invalid, Lifetime, Protocol, Scheme, Setting, SettingKind, Transport,
};
use weigh_model::trial::Settings;
use weigh_model::{Pattern, Trial};

pub struct UdpEcho;

impl Protocol for UdpEcho {
    fn name(&self) -> &'static str {
        "udp-echo"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("udp+echo", 7)];
        SCHEMES
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Request, Pattern::Publish]
    }

    fn settings(&self) -> &'static [Setting] {
        &[Setting {
            key: "retransmit",
            kind: SettingKind::Duration,
            default: "0s",
            doc: "After which time without an echo a message is sent again; 0s for never.",
        }]
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[], &[("retransmit", "100ms")]]
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        match settings.duration("retransmit").0 {
            0 => Guarantee::AtMostOnce,
            _ => Guarantee::AtLeastOnce,
        }
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let patience = trial.settings.duration("retransmit");
        Ok(Dial {
            transport: Transport::Datagram,
            lifetime: Lifetime::Kept,
            confirms: true,
            is_answered: false,
            producer_of: None,
            make: Box::new(move |_| Box::new(client::Client::new(patience))),
        })
    }

    fn host(&self, _settings: &Settings) -> Result<Host, Invalid> {
        let make = |_| -> Box<dyn weigh_model::server::Server> { Box::<server::Shard>::default() };
        Ok(Host { transport: Transport::Datagram, make: Box::new(make) })
    }
}
