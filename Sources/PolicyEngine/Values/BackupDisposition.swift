/// Whether data goes into a backup.
package enum BackupMode: String, CaseIterable, Sendable, Hashable, Comparable, BitwiseCopyable {
  /// It is stored.
  case always
  /// It is stored, and is read only if its version indicates a change.
  case whenChanged = "when-changed"
  /// It is excluded.
  case never

  /// Orders by restriction: `always` before `when-changed` before `never`.
  package static func < (left: Self, right: Self) -> Bool { left.restriction < right.restriction }

  private var restriction: UInt8 {
    switch self {
    case .always: 0
    case .whenChanged: 1
    case .never: 2
    }
  }
}

/// The destination of a backup, as far as policies distinguish destinations.
package struct Destination: Sendable, Hashable, CaseIterable {
  /// Whether the repository is hosted by another party.
  package var isCloud: Bool
  /// Whether the repository is unencrypted.
  package var isUnencrypted: Bool

  /// Creates a destination; by default a local, encrypted one, without restrictions.
  package init(isCloud: Bool = false, isUnencrypted: Bool = false) {
    self.isCloud = isCloud
    self.isUnencrypted = isUnencrypted
  }

  /// All four combinations.
  package static let allCases: [Destination] = [
    Destination(), Destination(isCloud: true), Destination(isUnencrypted: true),
    Destination(isCloud: true, isUnencrypted: true),
  ]

  /// The index in `allCases`.
  var index: Int { (isCloud ? 1 : 0) + (isUnencrypted ? 2 : 0) }
}

/// Whether data goes into a backup, by destination.
package struct BackupDisposition: Sendable, Hashable, BitwiseCopyable {
  /// The mode for every destination.
  package var standard: BackupMode
  /// The additional restriction for a repository in a cloud.
  package var cloud: BackupMode
  /// The additional restriction for an unencrypted repository.
  package var unencrypted: BackupMode

  /// Creates a disposition; by default the destinations add no restriction.
  package init(
    _ standard: BackupMode, cloud: BackupMode = .always, unencrypted: BackupMode = .always
  ) {
    self.standard = standard
    self.cloud = cloud
    self.unencrypted = unencrypted
  }

  /// Returns the mode for a destination: the most restrictive of those that apply.
  package func mode(for destination: Destination = Destination()) -> BackupMode {
    var mode = standard
    if destination.isCloud { mode = max(mode, cloud) }
    if destination.isUnencrypted { mode = max(mode, unencrypted) }
    return mode
  }
}

extension BackupDisposition: CustomStringConvertible {
  /// The disposition in the syntax of policy files.
  package var description: String {
    var parts: [String] = []
    if cloud > standard { parts.append("cloud: \(cloud.rawValue)") }
    if unencrypted > standard { parts.append("unencrypted: \(unencrypted.rawValue)") }
    guard !parts.isEmpty else { return standard.rawValue }
    return "{default: \(standard.rawValue), \(parts.joined(separator: ", "))}"
  }
}
