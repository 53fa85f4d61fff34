//! The object store of a fleet: material and outcomes, which are too large for messages.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{Config, ObjectStore};
use async_nats::jetstream::stream::StorageType;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::StreamExt;
use tokio::io::AsyncReadExt;

use crate::error::FleetError;

/// Opens the store of this name, and makes it if it is not there.
pub async fn open(jetstream: &Context, bucket: &str) -> Result<ObjectStore, FleetError> {
    if let Ok(store) = jetstream.get_object_store(bucket).await {
        return Ok(store);
    }
    let config = Config {
        bucket: bucket.to_owned(),
        description: Some("material and outcomes of a fleet of weigh".to_owned()),
        max_age: AGE_MAX,
        max_bytes: -1,
        storage: StorageType::File,
        num_replicas: 1,
        compression: false,
        placement: None,
    };
    let made = jetstream.create_object_store(config).await;
    made.map_err(|error| FleetError::Store(reason("made", bucket, &chain(&error))))
}

/// Stores an object. Storing it again replaces it.
pub async fn put(store: &ObjectStore, name: &str, mut bytes: &[u8]) -> Result<(), FleetError> {
    let stored = store.put(name, &mut bytes).await;
    stored.map(drop).map_err(|error| FleetError::Store(reason("stored", name, &chain(&error))))
}

/// Reads an object.
pub async fn get(store: &ObjectStore, name: &str) -> Result<Vec<u8>, FleetError> {
    let failed = |text: String| FleetError::Store(reason("read", name, &text));
    let mut object = store.get(name).await.map_err(|error| failed(chain(&error)))?;
    let mut bytes = Vec::with_capacity(object.info.size.min(SIZE_TRUSTED_MAX));
    object.read_to_end(&mut bytes).await.map_err(|error| failed(chain(&error)))?;
    Ok(bytes)
}

/// True if the object is there.
pub async fn has(store: &ObjectStore, name: &str) -> bool {
    store.info(name).await.is_ok_and(|info| !info.deleted)
}

/// Names of the objects that begin with this text.
pub async fn names(jetstream: &Context, bucket: &str, prefix: &str) -> Vec<String> {
    let heads = format!("$O.{bucket}.M.");
    let Ok(stream) = jetstream.get_stream(format!("OBJ_{bucket}")).await else { return vec![] };
    let Ok(mut subjects) = stream.info_with_subjects(format!("{heads}>")).await else {
        return vec![];
    };
    let mut names = Vec::new();
    while let Some(Ok((subject, _))) = subjects.next().await {
        let name = subject.strip_prefix(&heads).and_then(|coded| URL_SAFE.decode(coded).ok());
        let name = name.and_then(|bytes| String::from_utf8(bytes).ok());
        names.extend(name.filter(|name| name.starts_with(prefix)));
    }
    names
}

/// Removes an object, if it is there, and the word about it that the client's own call would
/// leave.
pub async fn remove(jetstream: &Context, bucket: &str, store: &ObjectStore, name: &str) {
    let Ok(info) = store.info(name).await else { return };
    let Ok(stream) = jetstream.get_stream(format!("OBJ_{bucket}")).await else { return };
    let (encoded, id) = (URL_SAFE.encode(name), info.nuid);
    for subject in [format!("$O.{bucket}.M.{encoded}"), format!("$O.{bucket}.C.{id}")] {
        // What remains is removed by the server after `AGE_MAX`.
        let _ = stream.purge().filter(subject).await;
    }
}

fn reason(verb: &str, name: &str, text: &str) -> String {
    let lower = text.to_lowercase();
    if ["maximum bytes", "resource", "no space", "insufficient"].iter().any(|it| lower.contains(it))
    {
        return format!(
            "the object store of the bus is full ({text}); help: raise max_file_store in the \
             configuration of nats-server, or remove old streams"
        );
    }
    format!("{name} cannot be {verb} in the object store of the bus: {text}")
}

/// The error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// What a coordinator that was killed leaves behind is removed after a week.
const AGE_MAX: Duration = Duration::from_secs(7 * 86_400);
/// A larger size is believed when the bytes have come.
const SIZE_TRUSTED_MAX: usize = 1 << 20;
