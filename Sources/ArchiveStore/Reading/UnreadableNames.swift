public import SystemIO

/// The names on unreadable pages of a directory. They are unknown except for their position among
/// the other names.
public struct UnreadableNames: Hashable, Sendable {
  /// The last name before them, or nil if they are the first in the directory.
  public let after: ByteString?
  /// The last of the lost names.
  public let last: ByteString

  /// Creates the range of names after `after`, or from the first name, up to `last`.
  public init(after: ByteString?, last: ByteString) {
    (self.after, self.last) = (after, last)
  }

  /// Whether a name may be one of the lost names.
  public func contains(_ name: ByteString) -> Bool {
    !(last < name) && (after.map { $0 < name } ?? true)
  }

  /// Returns the union with the range that follows.
  func joined(with next: UnreadableNames) -> UnreadableNames {
    UnreadableNames(after: after, last: next.last)
  }
}

extension UnreadableNames {
  /// Consecutive unreadable pages of a directory.
  struct Pages {
    private(set) var names: UnreadableNames
    /// The error of the first damaged page, or of the first page if this user may not read any of
    /// them.
    private var cause: StoreError

    init(_ names: UnreadableNames, _ cause: StoreError) {
      (self.names, self.cause) = (names, cause)
    }

    mutating func add(_ next: UnreadableNames, _ error: StoreError) {
      names = names.joined(with: next)
      if cause.isRefused, !error.isRefused { cause = error }
    }

    /// The error that describes the lost names and the cause.
    var error: StoreError {
      let from = names.after.map { "after '\($0)' " } ?? ""
      return StoreError(
        cause.code, cause.action, subject: cause.subject,
        reason: "some entries of the directory are lost, the names \(from)up to '\(names.last)': "
          + cause.reason, hint: cause.hint, cause: cause.cause,
        needsOlderKey: cause.needsOlderKey)
    }
  }
}
