//! Replaces the record of single messages in a build without Parquet: no value of these types
//! exists, and a request for one reports how to get a build that has it.

use std::path::Path;

use weigh_model::message::MessageRow;

use super::message_header::MessageHeader;
use crate::journal::RecordError;

/// Reads no file.
pub enum MessageReader {}

impl MessageReader {
    /// Refuses to open a file.
    ///
    /// # Errors
    /// Always.
    pub fn open(path: &Path) -> Result<MessageReader, RecordError> {
        Err(unbuilt(path))
    }

    /// Never called.
    pub fn header(&self) -> &MessageHeader {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn each<E: From<RecordError>>(
        &self,
        _each: impl FnMut(&MessageRow) -> Result<(), E>,
    ) -> Result<(), E> {
        match *self {}
    }
}

/// Writes no file.
pub enum MessageWriter {}

impl MessageWriter {
    /// Refuses to begin a file.
    ///
    /// # Errors
    /// Always.
    pub fn create(path: &Path, _header: &MessageHeader) -> Result<MessageWriter, RecordError> {
        Err(unbuilt(path))
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn push(&mut self, _row: &MessageRow) -> Result<(), RecordError> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn close(self) -> Result<(), RecordError> {
        match self {}
    }

    /// Never called.
    pub fn abandon(self) {
        match self {}
    }
}

fn unbuilt(path: &Path) -> RecordError {
    let problem = "this build of weigh cannot read or write Parquet";
    RecordError::saying(path, problem, "build it with --features full")
}
