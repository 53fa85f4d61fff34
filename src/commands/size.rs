//! `weigh size`: what a fleet of devices costs, and how many devices a server carries.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use weigh_advice::answer::{Inputs, OptionShown, families, figures_at};
use weigh_advice::choice::Choice;
use weigh_advice::sizing::{Carries, carries};
use weigh_advice::text::{Sized, sizes};
use weigh_advice::{Criterion, advise, situation::TlsWish};
use weigh_model::Guarantee;
use weigh_protocols::urls;
use weigh_runner::advice::calibration;
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::catalogue::Catalogue;

use crate::advising::cells::gather;
use crate::advising::flags::SituationFlags;
use crate::advising::reach::ReachFlags;
use crate::advising::ready::{Ready, runner};
use crate::commands::advise::{together, write};
use crate::help;
use crate::show::{output, terminal};

/// Flags of `weigh size`.
#[derive(Args)]
pub struct Size {
    /// Protocols (mqtt, http), targets (mosquitto) and servers that run (mqtt://HOST:PORT)
    #[arg(value_name = "PROTOCOL|TARGET|URL", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    situation: SituationFlags,
    /// Use the costs measured there: a file of weigh advise --save-cells, a run, or a summary.json
    #[arg(long, value_name = "FILE|RUN")]
    cells: Vec<String>,
    /// Measure the costs again, even if they are known; needed for a server given by URL
    ///
    /// A server given by URL gets at most 2,000 messages/s and 500 connections, in trials of
    /// at most 2 s.
    #[arg(long, conflicts_with = "cells")]
    calibrate: bool,
    #[command(flatten)]
    reach: ReachFlags,
    /// Write all known measured cells to a file
    #[arg(long, value_name = "FILE")]
    save_cells: Option<PathBuf>,
    /// Answer from known cells only; what was never measured is marked
    #[arg(long, conflicts_with = "calibrate")]
    no_run: bool,
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
    /// Suppress progress output
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder whose targets/*.toml, devices/*.toml and radios/*.toml replace built-in ones
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// An option in the answer.
struct Answered {
    choice: Choice,
    shown: OptionShown,
    carries: Option<Carries>,
}

impl Size {
    /// Prints the tables.
    ///
    /// # Errors
    /// Words and flags that are wrong, and trials that cannot be made.
    pub fn run(self) -> Result<Exit, Stop> {
        let mut situation = self.situation.situation(None, &self.words)?;
        if situation.network.tls == TlsWish::Either {
            let is_secure = self.words.iter().any(|word| says_tls(word));
            situation.network.tls = if is_secure { TlsWish::On } else { TlsWish::Off };
        }
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let mut ready = Ready::of(situation, &catalogue, self.data.as_deref())?;
        let needed = ready.situation.guarantee();
        ready.offers.all = keep_least(std::mem::take(&mut ready.offers.all), needed);
        let cells = self.known(&ready, &catalogue)?;
        if let Some(file) = &self.save_cells {
            write(file, &together(&cells)?.to_json())?;
        }
        let answered = ready.with(&cells, answer);
        if self.json {
            let of = |own: &Answered| json!({ "option": own.shown, "carries": own.carries });
            let all: Vec<_> = answered.iter().map(of).collect();
            let document =
                json!({ "schema": SCHEMA, "situation": ready.situation, "options": all });
            output::put_document(&format!("{document:#}\n"))?;
        } else {
            output::put(&text(&ready, answered))?;
        }
        Ok(Exit::Done)
    }

    /// The cells that are known, and those of families that are measured now because nothing is
    /// known of them.
    fn known(
        &self,
        ready: &Ready,
        catalogue: &Catalogue,
    ) -> Result<Vec<weigh_advice::cells::Cells>, Stop> {
        let mut cells = gather(&self.cells, &self.runs, &ready.here)?;
        let choices = ready.offers.all.iter().map(|own| &own.choice);
        let wanted = calibration::wanted(choices, ready.situation.traffic.subscribers > 0);
        let is_known = |own: &calibration::Wanted| {
            let all = cells.iter().flat_map(|document| &document.cells);
            let mut of_family =
                all.filter(|cell| cell.protocol == own.protocol && cell.target == own.target);
            of_family.next().is_some()
        };
        let unknown: Vec<calibration::Wanted> =
            wanted.into_iter().filter(|own| self.calibrate || !is_known(own)).collect();
        if unknown.is_empty() || self.no_run || !self.cells.is_empty() {
            return Ok(cells);
        }
        if let Some(url) = unknown.iter().find(|own| own.is_foreign() && !self.calibrate) {
            return Err(unmeasured(&url.target));
        }
        let lookouts = self.reach.lookouts(&unknown)?;
        let names: Vec<String> = unknown
            .iter()
            .map(|own| match own.target.as_str() {
                "reference" => own.protocol.clone(),
                target => target.to_owned(),
            })
            .collect();
        let (_, trials) = calibration::plan(&unknown, calibration::Extent::Whole);
        if !self.quiet {
            eprintln!("weigh: measuring the costs of {} first: {trials} trials", names.join(", "));
        }
        let mut runner = runner(catalogue, &self.runs, self.data.clone(), self.quiet)?;
        runner.may_load = self.reach.may_load();
        let measured = calibration::calibrate(&runner, &unknown, &lookouts)?;
        calibration::keep(&measured, &ready.here, help::VERSION)?;
        // What was just measured replaces what the cache had; shipped cells stay for other loads.
        for document in cells.iter_mut().filter(|document| !document.is_shipped) {
            document.cells.retain(|cell| {
                !unknown
                    .iter()
                    .any(|own| own.protocol == cell.protocol && own.target == cell.target)
            });
        }
        cells.push(measured);
        Ok(cells)
    }
}

/// True for a URL of a server inside TLS.
fn says_tls(word: &str) -> bool {
    let read = word.contains("://").then(|| urls::read(word));
    read.is_some_and(|read| read.is_ok_and(|(_, endpoint)| urls::is_secure(&endpoint)))
}

/// A server that others use is loaded only if the user says so.
fn unmeasured(url: &str) -> Stop {
    Stop::usage(format!(
        "{url}: its costs are not known\nhelp: add --calibrate --observe port:PORT to measure them \
         with at most 2,000 messages/s and 500 connections, or --no-run to compute bytes only"
    ))
}

/// Of every protocol and server the lanes with the least guarantee that is enough.
fn keep_least(
    offers: Vec<weigh_advice::answer::Offer>,
    needed: Guarantee,
) -> Vec<weigh_advice::answer::Offer> {
    let least = |choice: &Choice| {
        let own = offers.iter().map(|own| &own.choice);
        own.filter(|own| own.family() == choice.family() && own.guarantee >= needed)
            .map(|own| own.guarantee)
            .min()
    };
    let kept: Vec<bool> = offers
        .iter()
        .map(|own| least(&own.choice).is_none_or(|least| own.choice.guarantee == least))
        .collect();
    offers.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(offer, _)| offer).collect()
}

/// The figures of every option, and what a server carries.
fn answer(inputs: &Inputs<'_>) -> Vec<Answered> {
    let advice = advise(inputs);
    let families = families(inputs);
    let of = |(offer, shown): (&weigh_advice::answer::Offer, &OptionShown)| {
        let figures = figures_at(offer, inputs, &families, None);
        let family = families.get(&offer.choice.family());
        let carries = figures.zip(family).and_then(|(figures, family)| {
            carries(&offer.choice, family, &figures, inputs.situation)
        });
        Answered { choice: offer.choice.clone(), shown: shown.clone(), carries }
    };
    inputs.offers.iter().zip(&advice.options).map(of).collect()
}

/// The tables with what is to be known of them.
fn text(ready: &Ready, answered: Vec<Answered>) -> String {
    let traffic = &ready.situation.traffic;
    let server = &ready.situation.server;
    let mut text = format!(
        "{} devices, {} every {}, TLS {}; a server has {} cores and {}, {} % of it used.\n\n",
        weigh_model::numbers::count(traffic.devices),
        traffic.size,
        traffic.every,
        if ready.situation.network.tls == TlsWish::On { "on" } else { "off" },
        weigh_model::numbers::exact(server.cores),
        server.memory,
        weigh_model::numbers::exact((server.headroom.0 * 100.0).round()),
    );
    let mut lanes: Vec<Sized> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for own in answered {
        let lane = own.choice.lane();
        if let Some(why) = &own.shown.why {
            notes.push(format!("{}: {why}", own.shown.name));
        }
        for (criterion, missing) in &own.shown.missing {
            let is_new = own.shown.why.as_ref() != Some(&missing.why);
            let is_shown = match criterion {
                Criterion::Latency => false,
                Criterion::Energy => ready.situation.device.is_some(),
                _ => true,
            };
            if is_new && is_shown {
                notes.push(format!("{}, {criterion}: {}", own.shown.name, missing.why));
            }
        }
        let at = usize::from(!own.choice.is_kept);
        let place = match lanes.iter_mut().find(|sized| sized.lane == lane) {
            Some(place) => place,
            None => {
                lanes.push(Sized { lane, ways: [None, None] });
                lanes.last_mut().expect("it was added")
            }
        };
        place.ways[at] = Some((own.shown, own.carries));
    }
    text += &sizes(&lanes, usize::from(terminal::style().width));
    text += "\nkept: a connection for each device; each: one for each message. Ranges are 95 % \
             intervals.\n* beyond what was measured: the cost model alone. servers: kept / each.\n";
    notes.dedup();
    for note in notes {
        text += &format!("? {note}\n");
    }
    text
}

const SCHEMA: &str = "weigh/size/1";
