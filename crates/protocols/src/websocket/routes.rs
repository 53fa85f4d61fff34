//! Paths: where producers send, where subscribers listen, and which channel a path names. In pairs
//! each producer has a channel of its own.

use weigh_model::trial::Settings;

use super::settings::{self, Confirm, PATH, SUBSCRIBE_PATH};
use crate::push_core::trial::channel_below;

/// Paths of these settings, without a query.
pub(super) struct Routes {
    publish: Vec<(String, Confirm)>,
    subscribe: String,
}

/// What a client that asks for an upgrade wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To send to this channel.
    Publish(u32, Confirm),
    /// To listen to this channel.
    Subscribe(u32),
}

impl Routes {
    pub(super) fn of(settings: &Settings) -> Routes {
        let path = without_query(path(settings));
        let publish = match path.contains(CONFIRM) {
            true => Confirm::ALL.map(|own| (path.replace(CONFIRM, own.word()), own)).to_vec(),
            false => vec![(path.to_owned(), settings::confirm(settings))],
        };
        Routes { publish, subscribe: without_query(subscribe_path(settings)).to_owned() }
    }

    /// True if producers and subscribers can be distinguished.
    pub(super) fn are_distinct(&self) -> bool {
        self.publish.iter().all(|(path, _)| *path != self.subscribe)
    }

    /// What the target of a request names; `None` if there is nothing.
    pub(super) fn find(&self, target: &str) -> Option<Route> {
        let place = without_query(target);
        if let Some(channel) = channel_below(place, &self.subscribe) {
            return Some(Route::Subscribe(channel));
        }
        self.publish.iter().find_map(|(path, confirm)| {
            channel_below(place, path).map(|channel| Route::Publish(channel, *confirm))
        })
    }

    /// The paths in words.
    pub(super) fn words(&self) -> String {
        let publish: Vec<&str> = self.publish.iter().map(|(path, _)| &**path).collect();
        format!("send at {}, and listen at {}", publish.join(", "), self.subscribe)
    }
}

/// The path of producers by the settings, with its placeholder.
pub(super) fn path(settings: &Settings) -> &str {
    match settings.text("path") {
        "" => PATH,
        path => path,
    }
}

/// The path of subscribers by the settings.
pub(super) fn subscribe_path(settings: &Settings) -> &str {
    match settings.text("subscribe_path") {
        "" => SUBSCRIBE_PATH,
        path => path,
    }
}

/// Fills the placeholder in.
pub(super) fn filled(path: &str, confirm: Confirm) -> String {
    path.replace(CONFIRM, confirm.word())
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// Stands for the setting `confirm` in a path.
const CONFIRM: &str = "{confirm}";

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(given: &[(&str, &str)]) -> Routes {
        let given = given.iter().copied();
        Routes::of(&Settings::new("websocket", settings::SETTINGS, given).unwrap())
    }

    #[test]
    fn paths_name_channels_and_what_confirms() {
        let own = routes(&[]);
        for (target, route) in [
            ("/messages/reply", Some(Route::Publish(0, Confirm::Reply))),
            ("/messages/none/7?x=1", Some(Route::Publish(8, Confirm::Nothing))),
            ("/messages/echo", Some(Route::Publish(0, Confirm::Echo))),
            ("/subscribe", Some(Route::Subscribe(0))),
            ("/subscribe/0", Some(Route::Subscribe(1))),
            ("/subscribe/16777216", None),
            ("/subscribe/x", None),
            ("/subscribes", None),
            ("/", None),
        ] {
            assert_eq!(own.find(target), route, "{target}");
        }
        let own = routes(&[("path", "/chat"), ("confirm", "pong"), ("subscribe_path", "/all")]);
        assert_eq!(own.find("/chat/3"), Some(Route::Publish(4, Confirm::Pong)));
        assert_eq!(own.find("/all"), Some(Route::Subscribe(0)));
        assert!(own.are_distinct());
        assert!(!routes(&[("path", "/a"), ("subscribe_path", "/a?b")]).are_distinct());
    }
}
