//! What a case needs and no plan, journal or report may hold, and the targets that it is for.

use std::collections::BTreeMap;

use weigh_model::endpoint::Credentials;
use weigh_model::protocol::Invalid;
use weigh_plan::world::REFERENCE;
use weigh_testbed::catalogue::Catalogue;

use crate::case::lanes::Against;

/// What a case needs and no plan, journal or report may hold.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Who we are to targets given by URL that have no credentials of their own.
    pub user: Option<Credentials>,
    /// Who we are to the target of this URL.
    pub by_url: BTreeMap<String, Credentials>,
    /// Settings that are secret, by plan key.
    pub settings: BTreeMap<String, String>,
}

/// What a plan names as a target.
///
/// # Errors
/// If there is none of this name.
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
