//! The language of plans as users meet it: what is resolved to which cases, what is refused with
//! which words, and the schema for editors.

mod background;
mod cases;
mod errors;
mod examples;
mod load_keys;
mod round_trip;
mod schema;
mod stored;
mod tables;
mod world;
