//! `weigh seal make`: encrypts and signs files as one object.

use std::path::{Path, PathBuf};

use clap::Args;
use weigh_model::seal::Cipher;
use weigh_seal::{ONLY, PlainPart, Policy, RecipientKey, Sealing, SignerKey};

use crate::sealing::files;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::sealed_bodies::now_s;

/// Flags of `weigh seal make`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Make {
    /// Files to seal, each as one part: FILE, NAME=FILE for another name, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Public X25519 keys of the recipients, in PEM
    #[arg(long, value_name = "PUBLIC-KEY", num_args = 1.., required = true)]
    to: Vec<PathBuf>,
    /// Private Ed25519 key to sign with, in PEM; without it the origin cannot be proved
    #[arg(long, value_name = "PRIVATE-KEY")]
    sign: Option<PathBuf>,
    /// TOML file that says who may open which part, when and what for; several parts need one
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Cipher: aes-128-gcm, aes-256-gcm or chacha20-poly1305
    #[arg(long, value_name = "CIPHER", default_value = "aes-128-gcm")]
    cipher: Cipher,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Make {
    /// Seals the files.
    ///
    /// # Errors
    /// A file that cannot be read or written, a key of the wrong kind, and a policy that does not
    /// fit the recipients.
    pub fn run(self) -> Result<Exit, Stop> {
        let recipients = self.to.iter().map(|path| {
            let text = files::text(path)?;
            RecipientKey::from_pem(&text, &path.display().to_string()).map_err(files::stop)
        });
        let recipients: Vec<RecipientKey> = recipients.collect::<Result<_, Stop>>()?;
        let signer = self.sign.as_ref().map(|path| {
            let text = files::private_key(path)?;
            SignerKey::from_pem(&text, &path.display().to_string()).map_err(files::stop)
        });
        let signer = signer.transpose()?;
        let policy = self.policy.as_ref().map(|path| {
            let text = files::text(path)?;
            Policy::from_toml(&text, now_s()).map_err(files::stop_at(path))
        });
        let policy = policy.transpose()?;
        let parts = self.files.iter().map(|word| part(word));
        let parts: Vec<PlainPart> = parts.collect::<Result<_, Stop>>()?;
        let sealing = Sealing {
            cipher: self.cipher,
            recipients: &recipients,
            signer: signer.as_ref(),
            policy: policy.as_ref(),
        };
        let object = sealing.seal(&parts).map_err(|error| match &self.policy {
            Some(path) if matches!(error, weigh_seal::SealError::Policy { .. }) => {
                files::stop_at(path)(error)
            }
            _ => files::stop(error),
        })?;
        files::put(&object, self.output.as_ref(), false)?;
        Ok(Exit::Done)
    }
}

/// Returns the part of a word of the command line. Its name is that of the file, without folders.
fn part(word: &Path) -> Result<PlainPart, Stop> {
    let text = word.to_string_lossy();
    let (name, path) = match text.split_once('=') {
        // A file whose own name has the sign is that file.
        Some((name, path)) if !word.exists() => (name.to_owned(), PathBuf::from(path)),
        _ if text == "-" => (ONLY.to_owned(), word.to_path_buf()),
        _ => {
            let name = word.file_name().unwrap_or(word.as_os_str());
            (name.to_string_lossy().into_owned(), word.to_path_buf())
        }
    };
    Ok(PlainPart { name, content: files::bytes(&path)? })
}

const AFTER_HELP: &str = "\
Make keys with openssl:
  openssl genpkey -algorithm X25519 -out alice.pem
  openssl pkey -in alice.pem -pubout -out alice.pub
  openssl genpkey -algorithm ED25519 -out owner.pem
  openssl pkey -in owner.pem -pubout -out owner.pub
  weigh seal make reading.json --to alice.pub --sign owner.pem --policy policy.toml -o r.sealed
docs/guide/sealed-payload.md shows a whole policy. `weigh seal inspect --help` lists what sealed
objects cannot do.";
