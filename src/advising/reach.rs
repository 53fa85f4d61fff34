//! Flags for servers that another process started: where their processor time is seen, and the
//! confirmation that they may be loaded.

use clap::{ArgAction, Args};
use weigh_model::lookout::Lookout;
use weigh_protocols::urls;
use weigh_runner::advice::calibration::Wanted;
use weigh_runner::exit::Stop;

/// Flags about servers given by URL.
#[derive(Args, Clone, Debug)]
pub struct ReachFlags {
    /// Where CPU and memory of a server given by URL are seen: port:1883, pid:7, an agent
    ///
    /// With several URLs: URL=port:1883. docs/guide/observe.md lists what can be observed.
    #[arg(long, value_name = "[URL=]WHAT")]
    observe: Vec<String>,
    /// Confirm that you are authorised to load-test remote hosts
    #[arg(long, action = ArgAction::SetTrue)]
    i_may_load_this: bool,
}

impl ReachFlags {
    /// True confirms that remote hosts may be loaded.
    pub fn may_load(&self) -> bool {
        self.i_may_load_this
    }

    /// What is observed while these families are measured, each with its URL: `URL=WHAT`.
    ///
    /// # Errors
    /// What cannot be observed, and a URL of which nothing is seen.
    pub fn lookouts(&self, wanted: &[Wanted]) -> Result<Vec<String>, Stop> {
        let mut urls: Vec<&str> =
            wanted.iter().filter(|own| own.is_foreign()).map(|own| own.target.as_str()).collect();
        urls.dedup();
        let mut found = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        for text in &self.observe {
            let shown = text.split('#').next().unwrap_or_default();
            let wrong = |said: String| Stop::usage(format!("--observe {shown}: {said}"));
            let lookout: Lookout = text.parse().map_err(wrong)?;
            match (lookout.target, urls.as_slice()) {
                (Some(target), _) => {
                    // As targets are written: with the port.
                    let target = urls::endpoint(&target).map_or(target, |own| own.to_string());
                    let what = text.split_once('=').map_or("", |(_, what)| what);
                    found.push(format!("{target}={what}"));
                    seen.push(target);
                }
                (None, [url]) => {
                    seen.push((*url).to_owned());
                    found.push(format!("{url}={text}"));
                }
                (None, []) => {
                    let said = "no server is given by URL\nhelp: leave --observe out";
                    return Err(wrong(said.to_owned()));
                }
                (None, _) => {
                    let said =
                        format!("there are several URLs\nhelp: type --observe {}={shown}", urls[0]);
                    return Err(wrong(said));
                }
            }
        }
        match urls.iter().find(|url| !seen.iter().any(|own| own == *url)) {
            None => Ok(found),
            Some(url) => Err(Stop::usage(format!(
                "{url}: its CPU and memory cannot be seen from outside\nhelp: add --observe \
                 port:PORT if it is on this machine, or the address that weigh observe prints on \
                 its own; or type --no-run to compute bytes only"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(observe: &[&str]) -> ReachFlags {
        let observe = observe.iter().map(|own| (*own).to_owned()).collect();
        ReachFlags { observe, i_may_load_this: false }
    }

    fn wanted(targets: &[&str]) -> Vec<Wanted> {
        let of = |target: &&str| Wanted {
            protocol: "mqtt".to_owned(),
            target: (*target).to_owned(),
            lanes: vec![Vec::new()],
            tls: [true, false],
            is_datagram: false,
            opens: true,
            delivers: false,
        };
        targets.iter().map(of).collect()
    }

    #[test]
    fn a_lookout_belongs_to_the_only_url() {
        let found = flags(&["port:1883"]).lookouts(&wanted(&["reference", "mqtt://a:1883"]));
        assert_eq!(found.unwrap(), ["mqtt://a:1883=port:1883"]);
        assert!(flags(&[]).lookouts(&wanted(&["reference"])).unwrap().is_empty());
    }

    #[test]
    fn a_url_without_its_port_is_the_same() {
        let found = flags(&["mqtt://a=port:1883"]).lookouts(&wanted(&["mqtt://a:1883"]));
        assert_eq!(found.unwrap(), ["mqtt://a:1883=port:1883"]);
    }

    #[test]
    fn what_is_not_seen_is_said() {
        let two = wanted(&["mqtt://a:1883", "mqtt://b:1883"]);
        let cases: [(&[&str], &[Wanted], &str); 4] = [
            (&[], &two[..1], "cannot be seen from outside"),
            (&["port:1"], &two, "several URLs"),
            (&["port:1"], &[], "no server is given by URL"),
            (&["moon:1"], &two[..1], "cannot observe"),
        ];
        for (observe, wanted, expected) in cases {
            let said = flags(observe).lookouts(wanted).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
