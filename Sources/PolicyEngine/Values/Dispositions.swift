public import SandboxModel

/// Whether data goes into a backup, by destination.
public struct BackupDisposition: Sendable, Hashable, BitwiseCopyable {
  /// The mode for every destination.
  public var standard: Mode
  /// The additional restriction for a repository in a cloud.
  public var cloud: Mode
  /// The additional restriction for an unencrypted repository.
  public var unencrypted: Mode

  /// Creates a disposition; by default the destinations add no restriction.
  public init(
    _ standard: Mode, cloud: Mode = .always,
    unencrypted: Mode = .always
  ) {
    self.standard = standard
    self.cloud = cloud
    self.unencrypted = unencrypted
  }

  /// Returns the mode for a destination: the most restrictive of those that apply.
  public func mode(for destination: Destination = Destination()) -> Mode {
    var mode = standard
    if destination.isCloud { mode = max(mode, cloud) }
    if destination.isUnencrypted { mode = max(mode, unencrypted) }
    return mode
  }
}

extension BackupDisposition {
  /// Whether data goes into a backup.
  public enum Mode: String, CaseIterable, Sendable, Hashable, Comparable, BitwiseCopyable {
    /// It is stored.
    case always
    /// It is stored, and is read only if its version indicates a change.
    case whenChanged = "when-changed"
    /// It is excluded.
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
}

extension BackupDisposition: CustomStringConvertible {
  /// The disposition in the syntax of policy files.
  public var description: String {
    var parts: [String] = []
    if cloud > standard { parts.append("cloud: \(cloud.rawValue)") }
    if unencrypted > standard { parts.append("unencrypted: \(unencrypted.rawValue)") }
    guard !parts.isEmpty else { return standard.rawValue }
    return "{default: \(standard.rawValue), \(parts.joined(separator: ", "))}"
  }
}

/// The destination of a backup, as far as policies distinguish destinations.
public struct Destination: Sendable, Hashable, CaseIterable {
  /// Whether the repository is hosted by another party.
  public var isCloud: Bool
  /// Whether the repository is unencrypted.
  public var isUnencrypted: Bool
  /// Whether bundles are stored in a cloud, too, although policies exclude them from it.
  public var includesBundles = false

  /// Creates a destination; by default a local, encrypted one, without restrictions.
  public init(isCloud: Bool = false, isUnencrypted: Bool = false) {
    self.isCloud = isCloud
    self.isUnencrypted = isUnencrypted
  }

  /// All four combinations.
  public static let allCases: [Destination] = [
    Destination(), Destination(isCloud: true), Destination(isUnencrypted: true),
    Destination(isCloud: true, isUnencrypted: true),
  ]

  /// A destination without restrictions, for a scan whose selection is not that of a backup.
  public static let unrestricted = Destination()

  /// The destination with all bundles, even in a cloud.
  public var withBundles: Destination {
    var destination = self
    destination.includesBundles = true
    return destination
  }

  /// Returns the destination by which a policy decides about the containers of a kind: if bundles
  /// are included, a bundle is stored in a cloud as in a repository of the user.
  public func deciding(for kind: ContainerKind) -> Destination {
    Destination(
      isCloud: isCloud && !(includesBundles && kind == .bundle), isUnencrypted: isUnencrypted)
  }

  /// The index in `allCases`.
  var index: Int { (isCloud ? 1 : 0) + (isUnencrypted ? 2 : 0) }
}

/// Whether data may be deleted to gain space.
public enum PurgeDisposition: Sendable, Hashable, BitwiseCopyable {
  /// It is never deleted.
  case never
  /// It may be deleted, on these terms.
  case allowed(Terms)

  /// It may be deleted at any time, before all other data.
  public static let anytime = PurgeDisposition.allowed(
    Terms(order: 0, when: .anytime))

  /// The terms, or nil if it may not be deleted.
  public var terms: Terms? {
    if case .allowed(let terms) = self { terms } else { nil }
  }
}

extension PurgeDisposition {
  /// The terms on which data may be deleted to gain space.
  public struct Terms: Sendable, Hashable, BitwiseCopyable {
    /// The purge order: lower numbers are deleted first.
    public var order: UInt16
    /// The time at which it may be deleted.
    public var when: Moment
    /// The unit of deletion.
    public var unit: Unit
    /// The method of deletion.
    public var action: Action

    /// The largest order in a policy.
    public static let maximumOrder: UInt16 = 999

    /// Creates terms.
    public init(
      order: UInt16, when: Moment = .underPressure, unit: Unit = .file, action: Action = .unlink
    ) {
      self.order = order
      self.when = when
      self.unit = unit
      self.action = action
    }

    /// The time at which data may be deleted.
    public enum Moment: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
      /// At any time.
      case anytime
      /// Only if space is low.
      case underPressure = "under-pressure"
    }

    /// The unit of deletion.
    public enum Unit: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
      /// Each file individually, a database with its log.
      case file
      /// The directory with all its content.
      case directory
    }

    /// The method of deletion.
    public enum Action: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
      /// The file is deleted.
      case unlink
      /// The file is truncated to length 0.
      case truncate
    }
  }
}

extension PurgeDisposition: CustomStringConvertible {
  /// The disposition in the syntax of policy files.
  public var description: String {
    guard case .allowed(let terms) = self else { return "never" }
    if self == .anytime { return "anytime" }
    var parts = ["order: \(terms.order)", "when: \(terms.when.rawValue)"]
    if terms.unit != .file { parts.append("unit: \(terms.unit.rawValue)") }
    if terms.action != .unlink { parts.append("action: \(terms.action.rawValue)") }
    return "{\(parts.joined(separator: ", "))}"
  }
}

/// The handling of data when the app is updated.
public enum UpdateDisposition: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// The platform guarantees to preserve it.
  case preserve
  /// It may be preserved, without guarantee.
  case mayVanish = "may-vanish"
  /// The new version provides its own.
  case replace
  /// It is deleted.
  case discard
}

/// The handling of data on restore.
public enum RestoreDisposition: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// It is restored as stored.
  case restore
  /// The directory is restored empty.
  case recreateEmpty = "recreate-empty"
  /// It is not restored.
  case skip
  /// It is removed from the target if a whole container is restored.
  case remove
  /// The layout writes it again, such as container metadata with its UUID.
  case regenerate
}
