//! `weigh energy devices`: lists the devices and radios that energy can be modelled for, with the
//! source of every coefficient.

use std::fmt::Write as _;
use std::path::PathBuf;
use weigh_model::numbers::{exact, three_digits};

use clap::Args;
use serde_json::json;
use weigh_energy::case::closed;
use weigh_energy::keys::Kind;
use weigh_energy::{Catalogue, PartFile};
use weigh_model::refusal::shaped;

use crate::show::output;
use weigh_runner::energy;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh energy devices`.
#[derive(Args)]
pub struct Devices {
    /// Device or radio to show with all its coefficients [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Folder whose devices/*.toml and radios/*.toml replace built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Devices {
    /// Lists the devices and radios.
    ///
    /// # Errors
    /// An unknown name, and a folder of `--data` that cannot be read.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = energy::catalogue(self.data.as_deref())?;
        let chosen = self.name.as_deref().map(|name| named(&catalogue, name)).transpose()?;
        let text = match (&chosen, self.json) {
            (_, true) => json(&catalogue, chosen.as_ref())?,
            (Some(chosen), false) => one(&catalogue, chosen)?,
            (None, false) => list(&catalogue)?,
        };
        let put = if self.json { output::put_document } else { output::put };
        put(&text)?;
        Ok(Exit::Done)
    }
}

/// A device, a radio, or both if they have the same name.
type Chosen<'c> = Vec<(Kind, &'c PartFile)>;

fn named<'c>(catalogue: &'c Catalogue, name: &str) -> Result<Chosen<'c>, Stop> {
    let tried = [Kind::Device, Kind::Radio].map(|kind| (kind, catalogue.find(kind, name)));
    let wrong: Vec<String> =
        tried.iter().filter_map(|(_, found)| Some(shaped(found.as_ref().err()?))).collect();
    let found: Chosen<'c> =
        tried.into_iter().filter_map(|(kind, found)| Some((kind, found.ok()?))).collect();
    if found.is_empty() { Err(Stop::usage(wrong.join("\n"))) } else { Ok(found) }
}

fn every(catalogue: &Catalogue) -> Chosen<'_> {
    let of = |kind: Kind| catalogue.of(kind).iter().map(move |file| (kind, file));
    of(Kind::Device).chain(of(Kind::Radio)).collect()
}

fn list(catalogue: &Catalogue) -> Result<String, Stop> {
    let mut text = String::new();
    let mut before = None;
    for (kind, file) in every(catalogue) {
        if before.replace(kind) != Some(kind) {
            let _ = writeln!(text, "{}", kind.folder());
        }
        let part = &file.part;
        let _ = writeln!(text, "  {:<12} {}: {}", part.name, part.title, part.about);
        text += &cases(catalogue, kind, file)?;
    }
    text += "\nweigh energy devices NAME shows every coefficient with its source.\n";
    Ok(text)
}

fn one(catalogue: &Catalogue, chosen: &Chosen<'_>) -> Result<String, Stop> {
    let mut text = String::new();
    for (kind, file) in chosen {
        let part = &file.part;
        let _ = writeln!(text, "{} {}: {}\n{}", kind.word(), part.name, part.title, part.about);
        let _ = writeln!(
            text,
            "supplied at {} V, {} core{}, errors correlated by {}",
            part.volts,
            part.cores,
            if part.cores == 1 { "" } else { "s" },
            part.correlation
        );
        if let Some(reason) = &part.has_none {
            let _ = writeln!(text, "no coefficient: {reason}");
        }
        for key in kind.keys() {
            let Some(own) = part.coefficients.get(key.name) else { continue };
            let _ = write!(
                text,
                "\n{:<12} {}, \u{b1} {} at 95 % ({})\n{:<12} {}\n{:<12} source: {}\n{:<12} \
                 verification: {}\n",
                key.name,
                own.published,
                own.uncertainty,
                own.basis,
                "",
                key.doc,
                "",
                own.source,
                "",
                own.verification
            );
        }
        text += &cases(catalogue, *kind, file)?;
    }
    Ok(text)
}

/// Returns published results next to those computed with the coefficients.
fn cases(catalogue: &Catalogue, kind: Kind, file: &PartFile) -> Result<String, Stop> {
    if kind == Kind::Device {
        return Ok(String::new());
    }
    let mut text = String::new();
    for closed in closed(catalogue, file).map_err(Stop::usage)? {
        let percent = (closed.modelled / closed.published - 1.0) * 100.0;
        let _ = writeln!(
            text,
            "  {:<12}   {}: {} {} modelled, {} published ({percent:+.2} %)",
            "",
            closed.case,
            three_digits(closed.modelled),
            closed.unit,
            exact(closed.published)
        );
    }
    Ok(text)
}

fn json(catalogue: &Catalogue, chosen: Option<&Chosen<'_>>) -> Result<String, Stop> {
    let all = every(catalogue);
    let shown = chosen.unwrap_or(&all);
    let of = |kind: Kind| -> Vec<_> {
        let own = shown.iter().filter(move |(other, _)| *other == kind);
        own.map(|(_, file)| json!(file.part)).collect()
    };
    let mut cases = Vec::new();
    for (_, file) in shown.iter().filter(|(kind, _)| *kind == Kind::Radio) {
        let of_file = closed(catalogue, file).map_err(Stop::usage)?;
        cases.extend(of_file.into_iter().map(|closed| {
            json!({
                "case": closed.case, "of": closed.of, "unit": closed.unit,
                "published": closed.published, "modelled": closed.modelled,
                "source": closed.source,
            })
        }));
    }
    let document = json!({
        "devices": of(Kind::Device), "radios": of(Kind::Radio), "published_cases": cases,
    });
    Ok(format!("{document:#}\n"))
}
