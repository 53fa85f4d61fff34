//! Settings of the reference server.

use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;

use crate::redis::codec::RequestMax;

/// Rules of all shards of one server.
pub(in crate::redis) struct Rules {
    pub(in crate::redis) most: RequestMax,
    /// User and password that clients need.
    pub(super) login: Option<Login>,
    /// Bytes of all keys.
    pub(super) memory_bytes_max: usize,
    /// Bytes that wait for a subscriber.
    pub(super) output_bytes_max: usize,
}

/// User and password.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// A password without a user.
    pub(in crate::redis) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let (user, password) = (settings.text("server_user"), settings.text("server_password"));
        if user.is_empty() && !password.is_empty() {
            return Err(Invalid::new(
                "redis.server_user",
                "a password needs a user",
                "type --set redis.server_user=default",
            ));
        }
        let bulk_bytes = settings.integer("bulk_bytes_max").max(64) as usize;
        let login = Login { user: user.to_owned(), password: password.to_owned() };
        Ok(Rules {
            most: RequestMax { bulk_bytes, bytes: bulk_bytes.saturating_add(REQUEST_BYTES_MORE) },
            login: (!password.is_empty()).then_some(login),
            memory_bytes_max: settings.integer("server_maxmemory").max(1 << 16) as usize,
            output_bytes_max: settings.integer("server_output_buffer").max(1 << 10) as usize,
        })
    }
}

/// Bytes of a request besides its largest string.
const REQUEST_BYTES_MORE: usize = 1 << 20;
