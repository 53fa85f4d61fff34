//! Secrets of a case, which no plan, journal or report may hold, and the targets they belong to.

use std::collections::BTreeMap;

use weigh_model::endpoint::Credentials;
use weigh_model::protocol::Invalid;
use weigh_plan::world::REFERENCE;
use weigh_testbed::catalogue::Catalogue;

use crate::case::lanes::Against;

/// Secrets of a run, which no plan, journal or report may hold.
///
/// # Examples
///
/// ```
/// use weigh_model::endpoint::Credentials;
/// use weigh_runner::case::secrets::Secrets;
///
/// let user = Credentials { user: "ann".to_owned(), password: "secret".to_owned() };
/// let secrets = Secrets { user: Some(user), ..Secrets::default() };
/// assert!(!format!("{secrets:?}").contains("secret,"), "passwords are never printed");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Credentials for targets given by URL that have none of their own.
    pub user: Option<Credentials>,
    /// Credentials by the URL of their target.
    pub by_url: BTreeMap<String, Credentials>,
    /// Settings that are secret, by plan key.
    pub settings: BTreeMap<String, String>,
}

/// Resolves the target that a plan names.
///
/// # Errors
/// An unknown name.
pub fn against(name: &str, catalogue: &Catalogue, secrets: &Secrets) -> Result<Against, Invalid> {
    if name == REFERENCE {
        return Ok(Against::Reference);
    }
    if !name.contains("://") {
        let wrong = |error| Invalid::new("target", format!("{error}"), "see `weigh targets`");
        catalogue.choose(name).map_err(wrong)?;
        return Ok(Against::Managed(name.to_owned()));
    }
    let mut endpoint =
        weigh_protocols::urls::endpoint(name).map_err(|said| Invalid::new("target", said, ""))?;
    let own = secrets.by_url.get(&endpoint.to_string()).or(secrets.user.as_ref());
    endpoint.credentials = endpoint.credentials.or_else(|| own.cloned());
    Ok(Against::Foreign(endpoint))
}
