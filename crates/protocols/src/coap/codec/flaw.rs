//! Reasons for which bytes are not a message of CoAP.

/// Reason for which bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Less than the four bytes that every message has.
    #[error("shorter than the header of four bytes")]
    Short,
    /// Another version; such messages are ignored silently (section 3).
    #[error("version {0}, and only version 1 is known")]
    Version(u8),
    /// The token length is one of the reserved ones.
    #[error("token length {0}, and the most is 8")]
    TokenLength(u8),
    /// The token ends after the datagram.
    #[error("the token is cut off")]
    TokenCut,
    /// An empty message with something after its header (section 4.1).
    #[error("an empty message of more than four bytes")]
    NotEmpty,
    /// A code of a reserved class (section 3).
    #[error("code of the reserved class {0}")]
    Class(u8),
    /// A delta or a length of 15 that is not a payload marker (section 3.1).
    #[error("an option with the reserved delta or length 15")]
    OptionReserved,
    /// An option ends after the datagram.
    #[error("an option is cut off")]
    OptionCut,
    /// An option number above 65,535.
    #[error("an option number above 65,535")]
    OptionNumber,
    /// A payload marker without a payload (section 3).
    #[error("a payload marker without a payload")]
    NoPayload,
}
