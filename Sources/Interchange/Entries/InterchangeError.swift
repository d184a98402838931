package import Codecs
package import SystemIO

/// A failed reading or writing of a foreign format: the action, the file, the reason, the position
/// and the remedy.
package struct InterchangeError: Error, Sendable {
  /// The kinds of failure that callers distinguish.
  package enum Kind: Sendable, Hashable, CaseIterable {
    /// The input has another format than the expected one, or none that is known.
    case unknownFormat
    /// The format is known, but this variant of it is not supported.
    case unsupported
    /// The source is damaged or truncated: nothing after this point can be read.
    case damaged
    /// One entry is damaged; later ones may be readable.
    case damagedEntry
    /// The source is encrypted, and no password was given.
    case keyRequired
    /// The password does not open the source.
    case wrongKey
    /// The source exceeds a limit of the program.
    case limitExceeded
    /// The format cannot represent the content to be written.
    case unrepresentable
    /// The file to write exists.
    case exists
    /// The operation was asked to stop.
    case interrupted
    /// Another program, which reads the source, failed.
    case programFailed
    /// A system call failed.
    case system
  }

  package let kind: Kind
  /// The action that failed, as the words after "cannot": "read the archive".
  package let action: String
  /// The path of the archive or backup; with a `:` and a path in it for a single entry.
  package let subject: ByteString
  /// The reason in plain words, without a full stop.
  package let reason: String
  /// The position in the source in bytes, if it is known.
  package let offset: UInt64?
  /// Whether data read before the error may be wrong, too: damage of compressed data shows only
  /// after it.
  package var isSuspect = false
  /// The remedy, if it is not the usual one of the kind.
  private let ownHint: String?
  /// The system call that failed, if there is one.
  package let cause: SystemError?

  /// Creates an error.
  package init(
    _ kind: Kind, _ action: String, subject: ByteString, reason: String, offset: UInt64? = nil,
    hint: String? = nil, cause: SystemError? = nil
  ) {
    self.kind = kind
    self.action = action
    self.subject = subject
    self.reason = reason
    self.offset = offset
    ownHint = hint
    self.cause = cause
  }

  /// Wraps a failed system call.
  package init(_ error: SystemError, _ action: String, subject: ByteString) {
    self.init(
      .system, action, subject: subject, reason: error.reason, hint: error.hint, cause: error)
  }

  /// Wraps the failure of a decoder: damage of one entry, or of the whole source.
  package init(
    _ error: CodecError, _ action: String, subject: ByteString, inEntry: Bool = false
  ) {
    let kind: Kind =
      switch error.kind {
      case .limit: .limitExceeded
      case .unsupported: inEntry ? .damagedEntry : .unknownFormat
      case .unrepresentable: .unrepresentable
      case .malformed, .truncated, .library: inEntry ? .damagedEntry : .damaged
      }
    self.init(
      kind, action, subject: subject, reason: error.reason,
      offset: error.offset.map { UInt64(clamping: $0) })
  }

  /// The reason if the source of an import was written meanwhile.
  static let changedReason = "it changed while it was read"

  /// Whether data read before the error can be kept; it is sound unless `isSuspect` is true.
  package var keepsEarlierEntries: Bool { kind == .damaged || kind == .limitExceeded }
}

extension InterchangeError: ReportableError {
  package var errorCode: ErrorCode {
    switch kind {
    case .unknownFormat, .unsupported: .unsupportedFormat
    case .damaged, .damagedEntry: .damaged
    case .keyRequired: .keyRequired
    case .wrongKey: .wrongKey
    case .limitExceeded: .limitExceeded
    case .unrepresentable: .invalidInput
    case .exists: .targetExists
    case .interrupted: .interrupted
    case .programFailed: .programFailed
    case .system: cause?.code ?? .systemError
    }
  }

  package var parts: ErrorParts { ErrorParts(action: action, subject: subject, reason: reason) }

  package var description: String {
    let position = offset.map { ", at byte \($0)" } ?? ""
    return "cannot \(action) '\(subject)': \(reason)\(position)"
  }

  package var hint: String? {
    if let ownHint { return ownHint }
    switch kind {
    case .unknownFormat:
      return "check that it is the right file; 'sandboxctl import --help' lists the commands for "
        + "other formats"
    case .unsupported: return "write it again with another program or without that feature"
    case .damaged, .damagedEntry: return "use another copy of it"
    case .keyRequired: return "give its password"
    case .wrongKey: return "check the password: the source's is needed, not the repository's"
    case .limitExceeded: return "check that it is the right file"
    case .unrepresentable: return "use another format"
    case .exists: return "delete it, or give another name"
    case .interrupted, .programFailed, .system: return nil
    }
  }
}
