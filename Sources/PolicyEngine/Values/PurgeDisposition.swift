/// Whether data may be deleted to gain space.
public enum PurgeDisposition: Sendable, Hashable, BitwiseCopyable {
  /// It is not touched.
  case never
  /// It may go, on these terms.
  case allowed(PurgeTerms)

  /// May go at any time, first of all.
  public static let anytime = PurgeDisposition.allowed(PurgeTerms(order: 0, when: .anytime))

  /// The terms, when it may go.
  public var terms: PurgeTerms? { if case .allowed(let terms) = self { terms } else { nil } }
}

/// On what terms data may be deleted to gain space.
public struct PurgeTerms: Sendable, Hashable, BitwiseCopyable {
  /// The turn in which it goes: lower ones first.
  public var order: UInt16
  /// When it may go.
  public var when: Moment
  /// What goes together.
  public var unit: Unit
  /// How it goes.
  public var action: Action

  /// The largest order that a policy may name.
  public static let maximumOrder: UInt16 = 999

  /// Makes terms.
  public init(
    order: UInt16, when: Moment = .underPressure, unit: Unit = .file, action: Action = .unlink
  ) {
    self.order = order
    self.when = when
    self.unit = unit
    self.action = action
  }

  /// When data may go.
  public enum Moment: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
    /// Whether or not space is low.
    case anytime
    /// Only while space is low.
    case underPressure = "under-pressure"
  }

  /// What goes together.
  public enum Unit: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
    /// Each file by itself; a database with its log.
    case file
    /// The directory with all that it holds.
    case directory
  }

  /// How data goes.
  public enum Action: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
    /// The file is removed.
    case unlink
    /// The file stays and becomes empty.
    case truncate
  }
}

extension PurgeDisposition: CustomStringConvertible {
  /// The disposition as a policy file writes it.
  public var description: String {
    guard case .allowed(let terms) = self else { return "never" }
    if self == .anytime { return "anytime" }
    var parts = ["order: \(terms.order)", "when: \(terms.when.rawValue)"]
    if terms.unit != .file { parts.append("unit: \(terms.unit.rawValue)") }
    if terms.action != .unlink { parts.append("action: \(terms.action.rawValue)") }
    return "{\(parts.joined(separator: ", "))}"
  }
}
