/// An age file or key that could not be read or written: the kind of failure and the reason.
///
/// No reason contains a secret: the text of an identity or a passphrase is never quoted.
public struct AgeError: Error, Hashable, Sendable {
  /// The kind of failure.
  public let kind: Kind
  /// The reason in plain words, without a full stop.
  public let reason: String

  init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// The kinds of failure, which determine the message, the hint and the handling by callers.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The ASCII armor is not strict PEM ("ASCII armor").
    case armor
    /// The header violates the specification, or the file ends before the payload's first piece.
    case header
    /// No identity, or not this passphrase, unwraps the file key.
    case noMatch
    /// The file key was unwrapped, but the header's MAC does not match the header.
    case headerMAC
    /// A piece of the payload is damaged, truncated, out of order or followed by other data.
    case payload
    /// The text is not an identity or recipient.
    case key
    /// The identity or recipient is of a type that is not supported, which the reason names.
    case unsupported
    /// A limit is exceeded: the work factor of scrypt, or the number of recipients.
    case limit
    /// libsodium failed, which for valid arguments means lack of memory.
    case library
  }
}

extension AgeError: CustomStringConvertible {
  /// The whole message: "cannot open the age file: the header has no end".
  public var description: String {
    switch kind {
    case .armor, .header, .noMatch, .headerMAC: "cannot open the age file: \(reason)"
    case .payload: "cannot decrypt the age file: \(reason)"
    case .key, .unsupported: "cannot use the age key: \(reason)"
    case .limit, .library: "cannot use the age file: \(reason)"
    }
  }

  /// The remedy, or nil if there is none to suggest.
  public var hint: String? {
    switch kind {
    case .armor, .header, .payload, .headerMAC:
      "the data is damaged: check the storage, or use another copy"
    case .noMatch: "use an identity of one of its recipients, or its passphrase"
    case .key: "a recipient begins with 'age1', an identity with 'AGE-SECRET-KEY-1'"
    case .unsupported: "use a key made by 'age-keygen' without options"
    case .limit: "check that it is the right file: no program writes such a file by default"
    case .library: "check that enough memory is free"
    }
  }
}
