//! `weigh seal open`: decrypts a part of a sealed object with the key of a recipient.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use weigh_seal::{Opened, OpenerKey, PlainPart, SignatureKey, open};

use crate::sealing::files;
use crate::sealing::text::printable;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::sealed_bodies::now_s;

/// Flags of `weigh seal open`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Open {
    /// Sealed object, or - for standard input
    file: PathBuf,
    /// Private X25519 key of a recipient, in PEM
    #[arg(long, value_name = "PRIVATE-KEY")]
    key: PathBuf,
    /// Public Ed25519 key of the required signer; a signed object needs it
    #[arg(long, value_name = "PUBLIC-KEY")]
    signer: Option<PathBuf>,
    /// Part to open, if the key opens several
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Open {
    /// Opens the object, or reports why not; then nothing of the content is written.
    ///
    /// # Errors
    /// A file that cannot be read or written, and an object that the key does not open or whose
    /// signature or policy does not hold.
    pub fn run(self) -> Result<Exit, Stop> {
        let name = self.key.display().to_string();
        let key = OpenerKey::from_pem(&files::private_key(&self.key)?, &name);
        let key = key.map_err(files::stop)?;
        let signer = self.signer.as_ref().map(|path| {
            let text = files::text(path)?;
            SignatureKey::from_pem(&text, &path.display().to_string()).map_err(files::stop)
        });
        let signer = signer.transpose()?;
        let object = files::bytes(&self.file)?;
        let opened = open(&object, &key, signer.as_ref(), now_s());
        let opened = opened.map_err(files::stop_at(&self.file))?;
        let part = self.wanted(&opened)?;
        files::put(&part.content, self.output.as_ref(), true)?;
        tell(&opened, part);
        Ok(Exit::Done)
    }

    fn wanted<'o>(&self, opened: &'o Opened) -> Result<&'o PlainPart, Stop> {
        let names: Vec<&str> = opened.parts.iter().map(|part| part.name.as_str()).collect();
        let names = printable(&names.join(", "));
        match (&self.part, opened.parts.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Stop::usage(format!(
                "{}: this key opens several parts\nhelp: name one with --part, of {names}",
                self.file.display()
            ))),
            (Some(wanted), parts) => {
                parts.iter().find(|part| part.name == *wanted).ok_or_else(|| {
                    let why = match opened.withheld.contains(wanted) {
                        true => "is not readable with this key",
                        false => "is not there",
                    };
                    let wanted = printable(wanted);
                    Stop::usage(format!(
                        "--part {wanted}: the part {why}\nhelp: type one that this key opens: \
                         {names}"
                    ))
                })
            }
        }
    }
}

/// Prints notes about the content on standard error.
fn tell(opened: &Opened, part: &PlainPart) {
    let by =
        opened.signed_by.map_or("without a signature".to_owned(), |id| format!("signed by {id}"));
    eprintln!("opened {:?}: {} bytes, {by}", part.name, part.content.len());
    let obligations: BTreeSet<&String> = opened.obligations.iter().collect();
    for obligation in obligations {
        eprintln!("the policy obliges you to: {}", printable(obligation));
    }
    let policy = opened.policy.as_ref();
    if let Some(endpoint) = policy.and_then(|policy| policy.audit_endpoint.as_ref()) {
        let endpoint = printable(endpoint);
        eprintln!("the policy wants this reported to {endpoint}; nothing here reports it");
    }
    if !opened.withheld.is_empty() {
        eprintln!("not for this key: {}", printable(&opened.withheld.join(", ")));
    }
}

const AFTER_HELP: &str = "\
Exit code 2, and no content, if the key belongs to no recipient, if the object, its policy or its
signature was changed, if a part belongs to another object, or if the object is not valid now.";
