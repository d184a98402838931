/// Whether data goes into a backup.
public enum BackupMode: String, CaseIterable, Sendable, Hashable, Comparable, BitwiseCopyable {
  /// It is stored.
  case always
  /// It is stored, and need not be read when its version says that it did not change.
  case whenChanged = "when-changed"
  /// It is left out.
  case never

  /// Orders by restriction: `always` before `when-changed` before `never`.
  public static func < (left: Self, right: Self) -> Bool { left.restriction < right.restriction }

  private var restriction: UInt8 {
    switch self {
    case .always: 0
    case .whenChanged: 1
    case .never: 2
    }
  }
}

/// Where a backup goes, as far as a policy tells destinations apart.
public struct Destination: Sendable, Hashable, CaseIterable {
  /// Whether the repository lies with somebody else.
  public var isCloud: Bool
  /// Whether the repository is plain.
  public var isUnencrypted: Bool

  /// Makes a destination; the local and encrypted one, to which no restriction applies, by default.
  public init(isCloud: Bool = false, isUnencrypted: Bool = false) {
    self.isCloud = isCloud
    self.isUnencrypted = isUnencrypted
  }

  /// All four.
  public static let allCases: [Destination] = [
    Destination(), Destination(isCloud: true), Destination(isUnencrypted: true),
    Destination(isCloud: true, isUnencrypted: true),
  ]

  /// The place among `allCases`.
  var index: Int { (isCloud ? 1 : 0) + (isUnencrypted ? 2 : 0) }
}

/// Whether data goes into a backup, by destination.
public struct BackupDisposition: Sendable, Hashable, BitwiseCopyable {
  /// What holds for every destination.
  public var standard: BackupMode
  /// What holds for a repository in a cloud, besides `standard`.
  public var cloud: BackupMode
  /// What holds for a repository that is not encrypted, besides `standard`.
  public var unencrypted: BackupMode

  /// Makes a disposition; the destinations add no restriction unless one is given.
  public init(
    _ standard: BackupMode, cloud: BackupMode = .always, unencrypted: BackupMode = .always
  ) {
    self.standard = standard
    self.cloud = cloud
    self.unencrypted = unencrypted
  }

  /// What holds for a destination: the most restrictive of what applies.
  public func mode(for destination: Destination = Destination()) -> BackupMode {
    var mode = standard
    if destination.isCloud { mode = max(mode, cloud) }
    if destination.isUnencrypted { mode = max(mode, unencrypted) }
    return mode
  }
}

extension BackupDisposition: CustomStringConvertible {
  /// The disposition as a policy file writes it.
  public var description: String {
    var parts: [String] = []
    if cloud > standard { parts.append("cloud: \(cloud.rawValue)") }
    if unencrypted > standard { parts.append("unencrypted: \(unencrypted.rawValue)") }
    guard !parts.isEmpty else { return standard.rawValue }
    return "{default: \(standard.rawValue), \(parts.joined(separator: ", "))}"
  }
}
