//! All devices and radios: built-in ones, and those of a folder that replace them.

use weigh_model::modelled::{EVERY, EnergyAsked, EnergyBasis};
use weigh_model::nearest::nearest;

use crate::keys::Kind;
use crate::part::{PartError, PartFile};

macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$((
            concat!($folder, "/", $name, ".toml"),
            include_str!(concat!("../../../", $folder, "/", $name, ".toml")),
        )),*]
    };
}

/// The files of `devices/`, in the order in which they are listed.
const DEVICES: &[(&str, &str)] =
    files!("devices": "pi-zero" "pi-2b" "pi-3b" "pi-3b-plus" "pi-4b" "nrf9160" "nb-iot-3gpp");

/// The files of `radios/`.
const RADIOS: &[(&str, &str)] = files!(
    "radios": "ethernet" "wifi" "wifi-2012" "gsm" "3g" "lte" "nb-iot" "nb-iot-tail" "nb-iot-edrx"
        "nb-iot-144" "nb-iot-154" "nb-iot-164"
);

/// All devices and radios.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    devices: Vec<PartFile>,
    radios: Vec<PartFile>,
}

impl Catalogue {
    /// Loads the built-in ones and those of these files, which replace built-in ones of the same
    /// name.
    ///
    /// # Errors
    /// If a file cannot be read as its kind.
    pub fn load(files: &[(Kind, String, String)]) -> Result<Catalogue, PartError> {
        let mut catalogue = Catalogue { devices: Vec::new(), radios: Vec::new() };
        for (kind, built_in) in [(Kind::Device, DEVICES), (Kind::Radio, RADIOS)] {
            for (file, text) in built_in {
                catalogue.put(kind, PartFile::parse(kind, file, text)?);
            }
        }
        for (kind, file, text) in files {
            catalogue.put(*kind, PartFile::parse(*kind, file, text)?);
        }
        Ok(catalogue)
    }

    /// All parts of a kind.
    pub fn of(&self, kind: Kind) -> &[PartFile] {
        match kind {
            Kind::Device => &self.devices,
            Kind::Radio => &self.radios,
        }
    }

    /// Returns the part of this name.
    ///
    /// # Errors
    /// If there is none: what is wrong, a colon, and the names there are.
    pub fn find(&self, kind: Kind, name: &str) -> Result<&PartFile, String> {
        let names = || self.of(kind).iter().map(|file| file.part.name.as_str());
        self.of(kind).iter().find(|file| file.part.name == name).ok_or_else(|| {
            let near = nearest(name, names());
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let all: Vec<&str> = names().collect();
            format!("unknown {} {name:?}: {near}type one of {}", kind.word(), all.join(", "))
        })
    }

    /// Returns the basis of the modelled figures of a run.
    ///
    /// # Errors
    /// The key of what is missing, and what to type.
    pub fn basis(&self, asked: &EnergyAsked) -> Result<EnergyBasis, (&'static str, String)> {
        let device = self.find(Kind::Device, &asked.device).map_err(|said| ("device", said))?;
        let radio = asked.radio.as_deref().map(|name| self.find(Kind::Radio, name));
        let radio = radio.transpose().map_err(|said| ("radio", said))?;
        Ok(EnergyBasis {
            device: device.part.clone(),
            radio: radio.map(|file| file.part.clone()),
            battery: asked.battery,
            every: asked.every.unwrap_or(EVERY),
            cpu: asked.cpu,
        })
    }

    fn put(&mut self, kind: Kind, file: PartFile) {
        let all = match kind {
            Kind::Device => &mut self.devices,
            Kind::Radio => &mut self.radios,
        };
        match all.iter_mut().find(|other| other.part.name == file.part.name) {
            Some(other) => *other = file,
            None => all.push(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_can_be_read_and_found() {
        let catalogue = Catalogue::load(&[]).unwrap();
        assert_eq!(catalogue.of(Kind::Device).len(), DEVICES.len());
        assert_eq!(catalogue.of(Kind::Radio).len(), RADIOS.len());
        for (kind, files) in [(Kind::Device, DEVICES), (Kind::Radio, RADIOS)] {
            for (file, _) in files {
                let name = file.split(['/', '.']).nth(1).unwrap_or_default();
                assert_eq!(catalogue.find(kind, name).unwrap().part.name, name);
            }
        }
        let said = catalogue.find(Kind::Radio, "3gg").unwrap_err();
        assert!(said.contains("did you mean 3g?") && said.contains("nb-iot"), "{said}");
    }

    #[test]
    fn a_file_replaces_and_adds() {
        let text = DEVICES[1].1.replace("value = 1.1", "value = 1.3");
        let added = text.replace("\"pi-2b\"", "\"mine\"");
        let file = |text: &str| (Kind::Device, "own.toml".to_owned(), text.to_owned());
        let catalogue = Catalogue::load(&[file(&text), file(&added)]).unwrap();
        assert_eq!(catalogue.of(Kind::Device).len(), DEVICES.len() + 1);
        for name in ["pi-2b", "mine"] {
            let found = catalogue.find(Kind::Device, name).unwrap();
            assert_eq!(found.part.coefficients["idle"].value, 1.3);
        }
        let broken = Catalogue::load(&[file("name = 7")]).unwrap_err();
        assert_eq!(broken.file, "own.toml");
    }
}
